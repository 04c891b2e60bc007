/** The output of `--json`: one object a line, every moment as ISO 8601 in UTC with milliseconds. */
export function jsonLine(facts: object): string {
  return `${JSON.stringify(facts, writeMoment)}\n`
}

/** `expires_at` and the like are in milliseconds; a stamp is in microseconds, 0 where the moment is not known. */
function writeMoment(name: string, value: unknown): unknown {
  if (typeof value !== 'number' || !/(^|_)at$/.test(name)) return value
  if (name !== 'observed_at') return new Date(value).toISOString()
  return value === 0 ? null : new Date(Math.floor(value / 1000)).toISOString()
}
