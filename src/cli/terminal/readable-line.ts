/** A line of the log for people at a terminal: the time in UTC, the level, the message, and its facts. */
import { WriteStream } from 'node:tty'
import { styleText } from 'node:util'
import { printable } from './table.ts'

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

/** A line that is no JSON object stays as it is. */
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
  return `${[...head, ...texts].join(' ')}\n${describeError(err)}`
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

function describeError(error: unknown): string {
  if (typeof error !== 'object' || error === null) return ''
  const { name, message, stack, cause } = error as Record<string, unknown>
  const lines = String(stack ?? `${name}: ${message}`).split('\n')
  const because = describeError(cause)
  return `${lines.map(line => `  ${printable(line)}\n`).join('')}${because && `  because of:\n${because}`}`
}
