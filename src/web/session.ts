/** The session is a token and the customer whose invoices the token opens. */
import { isCustomerId, isInvoiceId } from '../domain/invoice.ts'
import type { TokenLife } from './renewal.ts'

export interface Session {
  token: string
  customer: string
  /** The only invoice that the token opens. Null when the token opens all invoices of the customer. */
  invoice: string | null
}

/** Key in the session storage. Browsers delete the session storage when the tab closes. */
const key = 'fatura'

/** Takes the session from a link's fragment, `#t=TOKEN&c=cus_…`. The fragment is removed at once from the address bar and the history. */
export function takeSession(): Taken {
  const given = new URLSearchParams(location.hash.slice(1))
  const token = given.get('t')
  const kept = readKept()
  if (token === null) return { session: kept, former: null }
  history.replaceState(history.state, '', location.pathname + location.search)
  const session = openSession(token, given.get('c'))
  if (session === null) return { session: { token, customer: '', invoice: null }, former: kept }
  keepSession(session)
  const isSame = session.customer === kept?.customer && session.invoice === kept.invoice
  return { session, former: isSame ? null : kept }
}

/** `former` is the session that the link replaced. Null when both sessions show the same. */
export type Taken = Record<'session' | 'former', Session | null>

/** Whether a text is a complete access token or a JWT. */
export function isWhole(token: string): boolean {
  return /^fat_[0-9A-Za-z]{48}$/.test(token) || Object.keys(readClaims(token)).length > 0
}

/** Returns null when neither the link nor the token names a customer. */
export function openSession(token: string, customer: string | null): Session | null {
  const claims = readClaims(token)
  const owner = [customer, claims.sub, claims.customer_id].find(
    id => typeof id === 'string' && isCustomerId(id),
  )
  if (owner === undefined) return null
  const { invoice } = claims
  return {
    token,
    customer: owner as string,
    invoice: typeof invoice === 'string' && isInvoiceId(invoice) ? invoice : null,
  }
}

export function keepSession(session: Session | null): void {
  // A browser may refuse storage, for example in a frame of another site. The session then exists only in memory.
  try {
    if (session === null) sessionStorage.removeItem(key)
    else sessionStorage.setItem(key, JSON.stringify(session))
  } catch {}
}

function readKept(): Session | null {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? 'null')
  } catch {
    return null
  }
}

/** Returns the expiry of a JWT in milliseconds since 1970. Null for other tokens. */
export const expiryOf = (token: string): number | null => readLife(token).expiresAt

export function readLife(token: string): TokenLife {
  const { iat, exp } = readClaims(token)
  const momentOf = (seconds: unknown) => (typeof seconds === 'number' ? seconds * 1000 : null)
  return { issuedAt: momentOf(iat), expiresAt: momentOf(exp) }
}

/** Reads the claims of a JWT without verifying them. Only the service decides what a token may read. */
function readClaims(token: string): Record<string, unknown> {
  const [, payload, signature] = token.split('.')
  if (payload === undefined || signature === undefined) return {}
  try {
    const bytes = Uint8Array.from(atob(payload.replace(/-/g, '+').replace(/_/g, '/')), c => c.charCodeAt(0))
    return JSON.parse(new TextDecoder().decode(bytes)) ?? {}
  } catch {
    return {}
  }
}
