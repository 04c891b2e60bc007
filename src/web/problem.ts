/** Errors, in the kinds that need words of their own. */
import { FaturaError, type FaturaErrorCode } from '../sdk/client.ts'
import { expiryOf } from './session.ts'

/** Kinds that a retry cannot help. */
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
  /** Time of the next retry, in milliseconds since 1970; null when there is none. */
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
  // The parameter is an id in the address that is none, or a search of too many words.
  if (code === 'invalid_parameter') return param === 'invoiceId' ? 'gone' : 'unsearchable'
  return kinds[code] ?? 'broken'
}
