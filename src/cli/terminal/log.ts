import { isatty } from 'node:tty'
import { type Logger, pino } from 'pino'
import { movingLine } from './progress.ts'
import { readableLine } from './readable-line.ts'

/** JSON lines on standard output, on a terminal lines for people. Only those just before a kill -9 may be lost. */
export function createLog(level: string): Logger {
  const output = pino.destination({ dest: 1, sync: true })
  // On a terminal a line is seen at once, and never behind the progress line.
  const show = (line: string) => {
    movingLine.clear()
    output.write(readableLine(line))
  }
  return pino(
    { level, base: null, timestamp: createClock(), serializers: { err: error => describeError(error) } },
    { write: isatty(1) ? show : gatherLines(output) },
  )
}

export function logWaiting(log: Logger): (path: string) => void {
  return path => log.warn({ path }, 'waiting: another process writes to this store')
}

/** A write of this size to a pipe is atomic (PIPE_BUF on Linux): lines of several processes never mix. */
const writtenAtOnceBytes = 4_096

/** Delay of a line, to be written together with others. */
const gatherMs = 100

/** A write to a file costs more than all else of a request's line, so lines go out together, each whole. */
function gatherLines(output: { write(text: string): unknown }): (line: string) => void {
  let gathered = ''
  const flush = () => {
    const text = gathered
    gathered = ''
    if (text !== '') output.write(text)
  }
  process.on('exit', flush)
  return line => {
    if (gathered.length + line.length > writtenAtOnceBytes) flush()
    if (gathered === '') setTimeout(flush, gatherMs).unref()
    gathered += line
  }
}

/** Many lines fall into one millisecond: its text is made once. */
function createClock(): () => string {
  let last = 0
  let text = ''
  return () => {
    const now = Date.now()
    if (now !== last) {
      last = now
      text = `,"time":"${new Date(now).toISOString()}"`
    }
    return text
  }
}

/** Enough to find a fault by. With its causes, an error stays within what is written at once. */
const longestMessage = 300
const longestStack = 800
const mostCauses = 2

/** Name, message and stack alone: a database's error may carry the row that it failed on. */
function describeError(error: unknown, causes = mostCauses): object {
  if (!(error instanceof Error)) return { message: String(error).slice(0, longestMessage) }
  const { name, message, stack, cause } = error
  return {
    name,
    message: message.slice(0, longestMessage),
    stack: stack?.slice(0, longestStack),
    ...(cause !== undefined && causes > 0 && { cause: describeError(cause, causes - 1) }),
  }
}
