/** Decides when a host page is asked for its next token. Pure. */

/** A token is replaced after this share of its lifetime. */
const spentShare = 0.8
/** Minimum time between two automatic requests. */
const leastMs = 15_000
/** Pauses after the first failure, the second failure in a row, and so on. */
const pausesMs = [0, leastMs, 2 * leastMs, 60_000]

/** Issue and expiry time of a token in milliseconds since 1970. Each is null when the token does not contain it. */
export interface TokenLife {
  issuedAt: number | null
  expiresAt: number | null
}

/**
 * Returns the time from the receipt of a token to the next request. Null when the token has no expiry time. When this clock contradicts the
 * token's times, the token counts as issued at its receipt.
 */
export function renewAfterMs({ issuedAt, expiresAt }: TokenLife, now: number): number | null {
  if (expiresAt === null) return null
  const remainingMs = expiresAt - now
  const lifeMs = issuedAt === null ? remainingMs : expiresAt - issuedAt
  const isPlausible = remainingMs > 0 && remainingMs <= lifeMs
  const waitMs = isPlausible ? remainingMs - (1 - spentShare) * lifeMs : spentShare * lifeMs
  return Math.max(leastMs, Math.round(waitMs))
}

/** Returns the pause after a request without a usable token. `failures` is the number of earlier failures in a row. */
export function pauseAfterFailureMs(failures: number): number {
  return pausesMs[Math.min(failures, pausesMs.length - 1)] ?? 0
}
