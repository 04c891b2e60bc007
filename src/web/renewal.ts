/** When a host is asked for its next token: a pure decision over what is known of the last one. */

/** A token is replaced when this share of its life is over. */
const spentShare = 0.8
/** Least time between two questions that nobody waits for. */
const leastMs = 15_000
/** After a first refusal, a second failure in a row, and so on. */
const pausesMs = [0, leastMs, 2 * leastMs, 60_000]

/** A life in milliseconds since 1970, as the token tells it; either may be missing. */
export interface TokenLife {
  issuedAt: number | null
  expiresAt: number | null
}

/**
 * Time from the receipt of a token to the next question; null for a token that does not tell when it ends. A clock that runs before or
 * behind the host's says of a new token that it is over, or lives longer than it does: it then counts as received at its beginning.
 */
export function renewAfterMs({ issuedAt, expiresAt }: TokenLife, now: number): number | null {
  if (expiresAt === null) return null
  const leftMs = expiresAt - now
  const lifeMs = issuedAt === null ? leftMs : expiresAt - issuedAt
  const isPlausible = leftMs > 0 && leftMs <= lifeMs
  const waitMs = isPlausible ? leftMs - (1 - spentShare) * lifeMs : spentShare * lifeMs
  return Math.max(leastMs, Math.round(waitMs))
}

/** Time between a question that brought no good token and the next one, after so many others in a row that failed. */
export function pauseAfterFailureMs(failures: number): number {
  return pausesMs[Math.min(failures, pausesMs.length - 1)] ?? 0
}
