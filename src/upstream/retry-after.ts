/** However long an upstream asks us to wait, we look again after this. */
export const longestPauseMs = 60_000

/**
 * The pause of a `Retry-After` header, in milliseconds: from seconds or a date, a minute at most. Without a readable one,
 * it is the usual pause.
 */
export function readRetryAfter(value: string | undefined, now: number, usualPauseMs = 1_000): number {
  const text = value?.trim() ?? ''
  const asked = /^\d+$/.test(text)
    ? Number(text) * 1000
    : /[a-z]{3}/i.test(text)
      ? Date.parse(text) - now
      : Number.NaN
  return Number.isNaN(asked) ? usualPauseMs : Math.min(Math.max(asked, 0), longestPauseMs)
}
