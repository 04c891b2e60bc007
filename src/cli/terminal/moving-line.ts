/** The progress line on a terminal. All other output there clears it first. */
import { once } from 'node:events'

export interface MovingLine {
  /** False where lines cannot be replaced, as in a file. */
  readonly canMove: boolean
  /** Replaces the line drawn before. Only where it can move. */
  draw(text: string): void
  clear(): void
  /** Prints lines that stay. */
  print(text: string): void
}

export function createMovingLine(output: NodeJS.WriteStream): MovingLine {
  let isDrawn = false
  function clear(): void {
    if (isDrawn) output.write('\r\x1b[K')
    isDrawn = false
  }
  return {
    get canMove() {
      return output.isTTY === true
    },
    draw(text) {
      clear()
      output.write(text)
      isDrawn = true
    },
    clear,
    print(text) {
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

/** Prints, on a line that stays, that another process writes to the store. */
export function printWaiting(path: string): void {
  movingLine.print(`Waiting for another process that writes to ${path} …\n`)
}
