/** Formats one object of `--json` output as a line. Moments are ISO 8601 in UTC with milliseconds. */
export function jsonLine(facts: object): string {
  return `${JSON.stringify(facts, writeMoment)}\n`
}

/** Fields whose names end in `_at` hold milliseconds. `observed_stamp` holds microseconds and is written as `observed_at`. */
function writeMoment(name: string, value: unknown): unknown {
  if (typeof value === 'object' && value !== null && 'observed_stamp' in value) {
    const { observed_stamp, ...rest } = value
    return { ...rest, observed_at: writeStamp(Number(observed_stamp)) }
  }
  return typeof value === 'number' && /(^|_)at$/.test(name) ? new Date(value).toISOString() : value
}

/** Returns null for stamp 0, which means that the moment is unknown. */
function writeStamp(stamp: number): string | null {
  return stamp === 0 ? null : new Date(Math.floor(stamp / 1000)).toISOString()
}
