import { isatty, WriteStream } from 'node:tty'
import { styleText } from 'node:util'
import { type Logger, pino } from 'pino'
import { movingLine } from './progress.ts'
import { printable } from './table.ts'

/** A write of up to this size to a pipe is atomic (PIPE_BUF on Linux): lines of several processes never mix. */
const writtenAtOnceBytes = 4_096

/** Delay of a line, to be written together with others: a write costs more than all else of a line. */
const gatherMs = 100

/** JSON lines on standard output, on a terminal lines for people. Only those just before a kill -9 may be lost. */
export function createLog(level: string): Logger {
  const isTerminal = isatty(1)
  // Written now and then without `flushSync`, which waits until the disk has it, and every request with it.
  const output = pino.destination({
    ...{ dest: 1, sync: true, maxWrite: writtenAtOnceBytes },
    ...(!isTerminal && { minLength: writtenAtOnceBytes / 2, periodicFlush: gatherMs }),
  })
  // On a terminal a line is seen at once, and never behind the progress line.
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

/** Enough to find a fault by. With its causes, an error stays within what is written at once. */
const longestMessage = 300
const longestStack = 800
const maxCauses = 2

/** Name, message and stack alone: a database's error may carry the row that it failed on. */
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

/** Honours NO_COLOR and FORCE_COLOR. Read from no stream: a thread's standard output does not know that it is a terminal. */
const hasColours = WriteStream.prototype.getColorDepth() > 2

function paint(style: Style, text: string): string {
  return hasColours ? styleText(style, text, { validateStream: false }) : text
}

/** For people at a terminal: the time in UTC, the level, the message, and its facts. A line that is no JSON object stays as it is. */
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
  const head = [paint('gray', String(time).slice(11)), paint(style, word.padEnd(5)), title]
  return `${[...head, ...texts].join(' ')}\n${formatError(err)}`
}

function readEntry(line: string): Record<string, unknown> | null {
  try {
    const entry: unknown = JSON.parse(line)
    return typeof entry === 'object' && entry !== null ? { ...entry } : null
  } catch {
    return null
  }
}

/** Facts that every request has come first and without names. */
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
