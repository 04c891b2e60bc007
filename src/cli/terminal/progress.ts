/** Progress of a long command: a line that is redrawn on a terminal, now and then a plain line elsewhere. */
import { once } from 'node:events'

/** The progress line on a terminal. All other output there clears it first. */
export function createMovingLine(output: NodeJS.WriteStream) {
  let isDrawn = false
  function clear(): void {
    if (isDrawn) output.write('\r\x1b[K')
    isDrawn = false
  }
  return {
    /** False where lines cannot be replaced, as in a file. */
    get canMove(): boolean {
      return output.isTTY === true
    },
    /** Replaces the line drawn before. Only where it can move. */
    draw(text: string): void {
      clear()
      output.write(text)
      isDrawn = true
    },
    clear,
    print(text: string): void {
      clear()
      output.write(text)
    },
  }
}

/** A process has one terminal, so all that draw on it share this. */
export const movingLine = createMovingLine(process.stderr)

/** Prints a command's result to standard output, which may be the same terminal. */
export function printResult(text: string): void {
  movingLine.clear()
  process.stdout.write(text)
}

/** Writes to standard output, no faster than it is read. */
export async function writeOutput(bytes: string | Uint8Array): Promise<void> {
  movingLine.clear()
  if (!process.stdout.write(bytes)) await once(process.stdout, 'drain')
}

export function printWaiting(path: string): void {
  movingLine.print(`Waiting for another process that writes to ${path} …\n`)
}

/** A shorter command shows no progress. */
const patienceMs = 2_000

export type Progress = ReturnType<typeof createProgress>

export function createProgress(what: string, line = movingLine) {
  const everyMs = line.canMove ? 200 : 10_000
  const started = Date.now()
  let isShown = false
  let next = started + Math.max(patienceMs, everyMs)

  /** Duration and rate, for the closing line. */
  function pace(done: number): string {
    const seconds = (Date.now() - started) / 1000
    return `${seconds.toFixed(1)} s, ${Math.round(done / Math.max(seconds, 0.001))} ${what}/s`
  }

  function remaining(part: number | null): string {
    // Too early, a guess would only frighten; and of what follows the end of a step, nothing is known.
    if (part === null || part < 0.01 || part === 1) return ''
    const seconds = ((Date.now() - started) / 1000) * ((1 - part) / part)
    return `, about ${seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`} left`
  }

  return {
    /** `part`, from 0 to 1, is the share that is done; null when it is not known. */
    update(step: string, done: number, part: number | null = null): void {
      const isEnd = part === 1 && isShown
      if (Date.now() < next && !isEnd) return
      isShown = !isEnd
      next = Date.now() + everyMs
      const text = `${done} ${what} ${step} … ${pace(done)}${remaining(part)}`
      if (line.canMove) line.draw(text)
      else line.print(`${text}\n`)
    },
    print: (text: string) => line.print(`${text}\n`),
    pace,
    end: line.clear,
  }
}
