/** The output of `--json`: one object a line, every moment as ISO 8601 in UTC with milliseconds. */
export function jsonLine(facts: object): string {
  return `${JSON.stringify(facts, writeMoment)}\n`
}

/** `expires_at` and the like are in milliseconds. `observed_stamp` is in microseconds, and is told as `observed_at`. */
function writeMoment(name: string, value: unknown): unknown {
  if (typeof value === 'object' && value !== null && 'observed_stamp' in value) {
    const { observed_stamp, ...rest } = value
    return { ...rest, observed_at: writeStamp(Number(observed_stamp)) }
  }
  return typeof value === 'number' && /(^|_)at$/.test(name) ? new Date(value).toISOString() : value
}

/** A stamp is 0 where the moment is not known. */
function writeStamp(stamp: number): string | null {
  return stamp === 0 ? null : new Date(Math.floor(stamp / 1000)).toISOString()
}
