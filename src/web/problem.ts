/** Kinds of errors that need their own texts. */
import { FaturaError, type FaturaErrorCode } from '../sdk/client.ts'
import { expiryOf } from './session.ts'

/** Kinds of errors that a retry cannot solve. */
const finalKinds = ['expired', 'revoked', 'forbidden', 'gone', 'unsearchable'] as const

export type ProblemKind = (typeof finalKinds)[number] | 'limited' | 'offline' | 'broken'

const kinds: Partial<Record<FaturaErrorCode, ProblemKind>> = {
  insufficient_scope: 'forbidden',
  rate_limited: 'limited',
  connection_failed: 'offline',
  invoice_not_found: 'gone',
}

export interface Problem {
  kind: ProblemKind
  requestId: string | null
  /** Time of the next retry, in milliseconds since 1970. Null when no retry is planned. */
  retryAt: number | null
}

export const isFinal = ({ kind }: Problem) => finalKinds.some(final => final === kind)

export function describeProblem(error: unknown, token: string, retryAt: number | null = null): Problem {
  const { requestId = null } = error instanceof FaturaError ? error : {}
  const kind = error instanceof FaturaError ? kindOf(error, token) : 'broken'
  return { kind, requestId, retryAt }
}

function kindOf({ code, message, param }: FaturaError, token: string): ProblemKind {
  if (code === 'missing_token' || code === 'invalid_token')
    return (expiryOf(token) ?? Number.POSITIVE_INFINITY) <= Date.now() || /expired/i.test(message)
      ? 'expired'
      : 'revoked'
  // The parameter is an invalid invoice ID in the address, or a search with too many words.
  if (code === 'invalid_parameter') return param === 'invoiceId' ? 'gone' : 'unsearchable'
  return kinds[code] ?? 'broken'
}
