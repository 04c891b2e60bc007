import { isatty, WriteStream } from 'node:tty'
import { styleText } from 'node:util'
import { type Logger, pino } from 'pino'
import { movingLine } from './progress.ts'
import { printable } from './table.ts'

/** A write to a pipe of at most this size is atomic (PIPE_BUF on Linux), so lines of several processes never mix. */
const writtenAtOnceBytes = 4_096

/** Time for which log lines are collected, because one write costs more than building a line. */
const gatherMs = 100

/** Writes JSON lines to standard output, and readable lines to a terminal. A SIGKILL may lose the lines of the last moment. */
export function createLog(level: string): Logger {
  const isTerminal = isatty(1)
  // The output is written by a timer and not with `flushSync`, because `flushSync` waits for the disk and blocks every request.
  const output = pino.destination({
    ...{ dest: 1, sync: true, maxWrite: writtenAtOnceBytes },
    ...(!isTerminal && { minLength: writtenAtOnceBytes / 2, periodicFlush: gatherMs }),
  })
  // On a terminal each line is written at once, after the progress line is cleared.
  const show = (line: string) => {
    movingLine.clear()
    output.write(readableLine(line))
  }
  if (!isTerminal) process.on('exit', () => output.flushSync())
  return pino(
    {
      ...{ level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
      serializers: { err: error => describeError(error) },
    },
    isTerminal ? { write: show } : output,
  )
}

export function logWaiting(log: Logger): (path: string) => void {
  return path => log.warn({ path }, 'waiting: another process writes to this store')
}

/** Limits for a logged error. An error with its causes then fits one atomic write. */
const longestMessage = 300
const longestStack = 800
const maxCauses = 2

/** Keeps only name, message, stack and causes. A database error may carry the row that caused the failure. */
function describeError(error: unknown, causes = maxCauses): object {
  if (!(error instanceof Error)) return { message: String(error).slice(0, longestMessage) }
  const { name, message, stack, cause } = error
  return {
    name,
    message: message.slice(0, longestMessage),
    stack: stack?.slice(0, longestStack),
    ...(cause !== undefined && causes > 0 && { cause: describeError(cause, causes - 1) }),
  }
}

type Style = Parameters<typeof styleText>[0]

const levels: Readonly<Record<number, [word: string, style: Style]>> = {
  20: ['debug', 'gray'],
  30: ['info', 'green'],
  40: ['warn', 'yellow'],
  50: ['ERROR', 'red'],
}

/**
 * Whether terminals show colours. NO_COLOR and FORCE_COLOR are respected. A thread's standard output does not report that it is a terminal,
 * so no stream is asked.
 */
const hasColours = WriteStream.prototype.getColorDepth() > 2

function paint(style: Style, text: string): string {
  return hasColours ? styleText(style, text, { validateStream: false }) : text
}

/** Formats a log line for people: time in UTC, level, message and fields. A line that is not a JSON object is returned unchanged. */
export function readableLine(line: string): string {
  const entry = readEntry(line)
  if (entry === null) return line
  const { level, time, msg, err, ...facts } = entry
  const [word, style] = levels[Number(level)] ?? [String(level), 'gray']
  const { title, rest } =
    msg === 'request' ? describeRequest(facts) : { title: printable(String(msg ?? '')), rest: facts }
  const texts = Object.entries(rest)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${paint('gray', `${name}=`)}${formatFact(value)}`)
  const start = [paint('gray', String(time).slice(11)), paint(style, word.padEnd(5)), title]
  return `${[...start, ...texts].join(' ')}\n${formatError(err)}`
}

function readEntry(line: string): Record<string, unknown> | null {
  try {
    const entry: unknown = JSON.parse(line)
    return typeof entry === 'object' && entry !== null ? { ...entry } : null
  } catch {
    return null
  }
}

/** Method, route, status and duration come first, without field names. */
function describeRequest({ method, route, status, ms, ...rest }: Record<string, unknown>) {
  const style: Style = Number(status) >= 500 ? 'red' : Number(status) >= 400 ? 'yellow' : 'green'
  const what = printable(`${method} ${route ?? '(no route)'}`)
  return { title: `${what} ${paint(style, String(status))} ${ms} ms`, rest }
}

function formatFact(value: unknown): string {
  return printable(typeof value === 'object' ? JSON.stringify(value) : String(value))
}

function formatError(error: unknown): string {
  if (typeof error !== 'object' || error === null) return ''
  const { name, message, stack, cause } = error as Record<string, unknown>
  const lines = String(stack ?? `${name}: ${message}`).split('\n')
  const because = formatError(cause)
  return `${lines.map(line => `  ${printable(line)}\n`).join('')}${because && `  because of:\n${because}`}`
}
