/** The output of `--json`: one object a line, every moment as ISO 8601 in UTC with milliseconds. */

/** Stamps are in microseconds since 1970, 0 where the moment is not known; all other moments are in milliseconds. */
const stamps = new Set(['observed_at'])

export function jsonLine(facts: object): string {
  return `${JSON.stringify(facts, (name, value) => (isMoment(name, value) ? writeMoment(name, value) : value))}\n`
}

/** Moments are named so throughout: `expires_at`, and `at` alone. */
function isMoment(name: string, value: unknown): value is number {
  return typeof value === 'number' && /(^|_)at$/.test(name)
}

function writeMoment(name: string, value: number): string | null {
  if (!stamps.has(name)) return new Date(value).toISOString()
  return value === 0 ? null : new Date(Math.floor(value / 1000)).toISOString()
}
