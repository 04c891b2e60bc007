/** Progress of a long command. A terminal shows one line that is redrawn. Other outputs get a new line from time to time. */
import { once } from 'node:events'

/** Creates the progress line of a terminal. Other output to the terminal has to clear the progress line first. */
export function createMovingLine(output: NodeJS.WriteStream) {
  let isDrawn = false
  function clear(): void {
    if (isDrawn) output.write('\r\x1b[K')
    isDrawn = false
  }
  return {
    /** False where the output cannot redraw a line, for example in a file. */
    get canMove(): boolean {
      return output.isTTY === true
    },
    /** Replaces the progress line. Call only when `canMove` is true. */
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

/** The only progress line of this process. All writers to the terminal share it. */
export const movingLine = createMovingLine(process.stderr)

/** Prints a command's result to standard output. The progress line is cleared first, because both may be the same terminal. */
export function printResult(text: string): void {
  movingLine.clear()
  process.stdout.write(text)
}

/** Writes to standard output and waits while the reader is slower. */
export async function writeOutput(bytes: string | Uint8Array): Promise<void> {
  movingLine.clear()
  if (!process.stdout.write(bytes)) await once(process.stdout, 'drain')
}

export function printWaiting(path: string): void {
  movingLine.print(`Waiting for another process that writes to ${path} …\n`)
}

/** Time before the first progress is shown. A shorter command shows no progress. */
const patienceMs = 2_000

export type Progress = ReturnType<typeof createProgress>

export function createProgress(what: string, line = movingLine) {
  const everyMs = line.canMove ? 200 : 10_000
  const started = Date.now()
  let isShown = false
  let next = started + Math.max(patienceMs, everyMs)

  function pace(done: number): string {
    const seconds = (Date.now() - started) / 1000
    return `${seconds.toFixed(1)} s, ${Math.round(done / Math.max(seconds, 0.001))} ${what}/s`
  }

  function remaining(part: number | null): string {
    // Below 1 %, the estimated time would be far off. At 100 % a step is complete, and the duration of further steps is unknown.
    if (part === null || part < 0.01 || part === 1) return ''
    const seconds = ((Date.now() - started) / 1000) * ((1 - part) / part)
    return `, about ${seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`} left`
  }

  return {
    /** `part` is the completed share from 0 to 1. Null when the share is unknown. */
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
