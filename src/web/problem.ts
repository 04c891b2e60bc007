/** What can go wrong, in the kinds that need words of their own. */
import { FaturaError } from '../client/client.ts'
import { expiryOf } from './session.ts'

export type ProblemKind =
  | 'expired'
  | 'revoked'
  | 'forbidden'
  | 'limited'
  | 'offline'
  | 'gone'
  | 'unsearchable'
  | 'broken'

export interface Problem {
  kind: ProblemKind
  requestId: string | null
  /** When it is tried again by itself, in milliseconds since 1970; null when it is not. */
  retryAt: number | null
}

/** Another try does not help. */
export const isFinal = ({ kind }: Problem) =>
  ['expired', 'revoked', 'forbidden', 'gone', 'unsearchable'].includes(kind)

export function describeProblem(error: unknown, token: string, retryAt: number | null = null): Problem {
  const { requestId = null } = error instanceof FaturaError ? error : {}
  const kind = error instanceof FaturaError ? kindOf(error, token) : 'broken'
  return { kind, requestId, retryAt }
}

function kindOf({ code, message, param }: FaturaError, token: string): ProblemKind {
  switch (code) {
    case 'missing_token':
    case 'invalid_token':
      return hasExpired(token) || /expired/i.test(message) ? 'expired' : 'revoked'
    case 'insufficient_scope':
      return 'forbidden'
    case 'rate_limited':
      return 'limited'
    case 'connection_failed':
      return 'offline'
    case 'invoice_not_found':
      return 'gone'
    case 'invalid_parameter':
      // An id in the address that is none; or a search of too many words.
      return param === 'invoiceId' ? 'gone' : 'unsearchable'
    default:
      return 'broken'
  }
}

function hasExpired(token: string): boolean {
  const expiry = expiryOf(token)
  return expiry !== null && expiry <= Date.now()
}
