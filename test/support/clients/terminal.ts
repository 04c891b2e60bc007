/** A terminal with a shell, in which a test types what a page shows; and the page's blocks of commands with their output. */
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'

export const lacksTerminal =
  !spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux') &&
  'there is no script of util-linux'

export interface Typed {
  /** What the command wrote, both streams, as a terminal shows it. */
  lines: string[]
  code: number
}

export interface Terminal {
  /** Types a command, and resolves at its end. */
  run(command: string): Promise<Typed>
  /** Types a command that goes on. */
  start(command: string): void
  /** Resolves with the first value other than null that `find` makes of the lines of the command that goes on. */
  see<T>(find: (lines: string[]) => T | null): Promise<T>
  /** Ends the command that goes on with Ctrl-C. */
  interrupt(): Promise<void>
}

/** Closed with the test: what runs in it gets Ctrl-C. */
export async function openTerminal(
  t: TestContext,
  folder: string,
  env: Record<string, string>,
): Promise<Terminal> {
  const shell = 'stty -echo cols 500; exec bash --noprofile --norc'
  const child = spawn('script', ['--quiet', '--return', '--command', shell, '/dev/null'], {
    cwd: folder,
    env: { ...env, PS1: '', PS2: '', TERM: 'dumb' },
  }) as ChildProcessWithoutNullStreams
  const ended = once(child, 'close')
  let shown = ''
  let read = 0
  const type = (text: string) => child.stdin.write(`${text}\n`)
  child.stdin.on('error', () => {})
  child.stdout.setEncoding('utf8').on('data', text => {
    shown += text
  })

  async function wait<T>(find: () => T | null): Promise<T> {
    for (;;) {
      const found = find()
      if (found !== null) return found
      await Promise.race([
        once(child.stdout, 'data'),
        ended.then(() => Promise.reject(new Error(`the terminal ended: ${shown}`))),
      ])
    }
  }

  let done = 0
  async function finish(): Promise<Typed> {
    const mark = `done-${++done}`
    type(`printf '\\n${mark}:%s.\\n' $?`)
    const [{ index, 0: all, 1: code }] = await wait(() => {
      const found = new RegExp(`\\n${mark}:(\\d+)\\.\\r?\\n`).exec(shown.slice(read))
      return found && [found]
    })
    const text = shown.slice(read, read + index)
    read += index + all.length
    return { lines: linesOf(text), code: Number(code) }
  }

  t.after(async () => {
    child.stdin.write('\x03')
    type('')
    type('exit')
    const giveUp = setTimeout(() => child.kill('SIGKILL'), 30_000)
    await ended
    clearTimeout(giveUp)
  })
  // The shell is there, and what it wrote by itself is over.
  await finish()
  return {
    run(command) {
      type(command)
      return finish()
    },
    start: type,
    see: find => wait(() => find(linesOf(shown.slice(read)))),
    async interrupt() {
      child.stdin.write('\x03')
      await finish()
    },
  }
}

/** As they are seen: of a line that was written over, the last. */
function linesOf(text: string): string[] {
  const lines = text
    .replaceAll('\r\n', '\n')
    .replace(/\r$/, '')
    .split('\n')
    .map(line => line.slice(line.lastIndexOf('\r') + 1).replaceAll('\x1b[K', ''))
  while (lines.at(-1) === '') lines.pop()
  return lines
}

export interface ShownCommand {
  command: string
  /** Its output, as the page shows it. `…` stands for lines, or for the rest of one. */
  lines: string[]
}

/** The blocks of a page that show commands with their output, by the heading above, and the number of the step if there is one. */
export function consoleBlocks(page: string): Map<string, ShownCommand[]> {
  const blocks = new Map<string, ShownCommand[]>()
  let [heading, step, indent] = ['', '', '']
  let block: ShownCommand[] | null = null
  for (const line of page.split('\n')) {
    const [, before = '', fence] = /^( *)```(.*)$/.exec(line) ?? []
    if (block !== null && fence === undefined) {
      const text = line.slice(indent.length)
      if (text.startsWith('$ ')) block.push({ command: text.slice(2), lines: [] })
      else block.at(-1)?.lines.push(text)
    } else if (block !== null) block = null
    else if (fence === 'console') {
      const name = [heading, ...(step === '' ? [] : [step])].join(', ')
      if (blocks.has(name)) throw new Error(`two blocks of commands under ${name}`)
      block = []
      blocks.set(name, block)
      indent = before
    } else {
      const [, title] = /^#+ (.+)$/.exec(line) ?? []
      if (title !== undefined) [heading, step] = [title, '']
      ;[, step = step] = /^\*\*(\d+)\. /.exec(line) ?? []
    }
  }
  for (const commands of blocks.values())
    for (const { lines } of commands) while (lines.at(-1) === '') lines.pop()
  return blocks
}

/** Texts that a page shows, such as a token's ID, and those that this run has in their place. */
export type Known = Map<string, string>

/** Whether lines are as the page shows them. What holds a digit may be another: numbers, times, IDs; but `0 FAIL` stays. Remembers ids and ports. */
export function isAsShown(
  shown: readonly string[],
  lines: readonly string[],
  known: Known,
  extent: 'whole' | 'so far' = 'whole',
): boolean {
  const names: string[] = []
  const patterns = shown.map(line => {
    if (line === '…') return '(?:.*\n)*?'
    const parts = line.split(/(0 FAIL|[\w.-]*\d[\w.-]*)/).map((part, index) => {
      if (index % 2 === 0 || part === '0 FAIL')
        return RegExp.escape(part)
          .replaceAll(/(?:\\x20)+/g, ' +')
          .replaceAll('…', '.*')
      names.push(part)
      return '([\\w.-]+)'
    })
    return `${parts.join('')} *\n`
  })
  const text = lines.map(line => `${line}\n`).join('')
  const found = new RegExp(`^${patterns.join('')}${extent === 'whole' ? '$' : ''}`).exec(text)
  for (const [index, name] of found === null ? [] : names.entries()) {
    const here = found?.[index + 1] ?? ''
    if (/^(?:fat|key)_/.test(name)) known.set(name, here)
    if (names[index - 1] === '127.0.0.1') known.set(`127.0.0.1:${name}`, `127.0.0.1:${here}`)
  }
  return found !== null
}
