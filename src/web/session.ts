/** The session: a token, and the customer that it is for. */
import { isCustomerId, isInvoiceId } from '../domain/invoice.ts'
import type { TokenLife } from './renewal.ts'

export interface Session {
  token: string
  customer: string
  /** The only invoice that the token opens; null when all of the customer's. */
  invoice: string | null
}

/** Key of the session storage, which ends with the tab. */
const key = 'fatura'

/** From a link's fragment, `#t=TOKEN&c=cus_…`, which leaves the address bar, and so the history, first. */
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

/** `former` is the session that the link took the place of; null when it shows the same. */
export type Taken = Record<'session' | 'former', Session | null>

/** Whether a text is an access token or a JWT, and not a part of one or something else. */
export function isWhole(token: string): boolean {
  return /^fat_[0-9A-Za-z]{48}$/.test(token) || Object.keys(readClaims(token)).length > 0
}

/** Null when neither the link nor the token names the customer. */
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
  // A browser may refuse storage, as in a frame of another site: the session then lives in memory alone.
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

/** The expiry of a JWT, in milliseconds since 1970; null of any other token. */
export const expiryOf = (token: string): number | null => readLife(token).expiresAt

export function readLife(token: string): TokenLife {
  const { iat, exp } = readClaims(token)
  const momentOf = (seconds: unknown) => (typeof seconds === 'number' ? seconds * 1000 : null)
  return { issuedAt: momentOf(iat), expiresAt: momentOf(exp) }
}

/** The claims of a JWT, unverified: the service alone decides what a token may read. */
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
