/** How far a long command has come: a line that moves on a terminal, now and then a plain line elsewhere. */

export interface Progress {
  update(step: string, done: number): void
  /** Prints a line that stays. */
  say(line: string): void
  /** How long and how fast, for the closing line. */
  pace(done: number): string
  end(): void
}

/** What takes less needs no progress. */
const patience = 2_000

export function createProgress(what: string, output: NodeJS.WriteStream = process.stderr): Progress {
  const every = output.isTTY ? 200 : 10_000
  const started = Date.now()
  let next = started + Math.max(patience, every)
  let drawn = false

  function clear(): void {
    if (drawn) output.write('\r\x1b[K')
    drawn = false
  }

  function pace(done: number): string {
    const seconds = (Date.now() - started) / 1000
    return `${seconds.toFixed(1)} s, ${Math.round(done / Math.max(seconds, 0.001))} ${what}/s`
  }

  return {
    update(step, done) {
      if (Date.now() < next) return
      next = Date.now() + every
      const line = `${done} ${what} ${step} … ${pace(done)}`
      clear()
      output.write(output.isTTY ? line : `${line}\n`)
      drawn = output.isTTY
    },
    say(line) {
      clear()
      output.write(`${line}\n`)
    },
    pace,
    end: clear,
  }
}
