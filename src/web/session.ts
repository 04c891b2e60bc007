/** Who looks at whose invoices: a token, and what is known of it. */
import { isCustomerId, isInvoiceId } from '../invoice.ts'

export interface Session {
  token: string
  customer: string
  /** When the token is bound to one invoice, nothing else can be shown. */
  invoice: string | null
}

/** Of the tab: gone when it is closed. */
const key = 'fatura'

/**
 * From a link's fragment, `#t=TOKEN`, with `&c=cus_…` for a token that does not tell its customer. The fragment leaves the
 * address bar, and so the history, before anything else happens.
 */
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

export interface Taken {
  session: Session | null
  /** What was open before a link took its place, unless that shows the same. */
  former: Session | null
}

/** Whether a link's token is one at all: an access token, or a JWT. Part of one, or something else, is not. */
export function isWhole(token: string): boolean {
  return /^fat_[0-9A-Za-z]{48}$/.test(token) || Object.keys(readClaims(token)).length > 0
}

/** Null when there is no telling whose invoices they are. */
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

/** When a token that tells it ends, in milliseconds. */
export function expiryOf(token: string): number | null {
  const { exp } = readClaims(token)
  return typeof exp === 'number' ? exp * 1000 : null
}

/** What a JWT says of itself. Nothing is proven by it: the service alone decides what a token may read. */
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
