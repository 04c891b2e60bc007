/**
 * The program again, in a process that has its modules loaded: a run then costs what the command does, not what a start costs.
 * The whole command line is run, with the arguments, environment and working directory of the run, and writes to real standard output.
 * Two runs at once are two processes.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { compileCache, quickLoading } from './compile-cache.ts'

export interface HostedRun {
  args: readonly string[]
  env: Record<string, string>
  folder: string
  /** Standard input. */
  input: string
}

export interface HostedOutcome {
  code: number
  stdout: string
  stderr: string
}

/** Written behind the output of each run. */
export const endMark = '\u0004\n'

/** Commands that end by themselves. */
const hosted =
  'account completion copy doctor explain export health import key link migrate openapi reconcile status token'.split(
    ' ',
  )

const started = new Set<string>()
const idleHosts: ChildProcess[] = []

/**
 * Whether a host may run it. The first run of a command in a test file is never one: it is a start of the program. `endsItself`: it
 * does so here, though the command goes on usually.
 */
export function takesHost([name = '', first = '', ...rest]: readonly string[], endsItself = false): boolean {
  const isHelp = [first, ...rest].includes('--help')
  const command = isHelp ? '--help' : /^([a-z]+|--once)$/.test(first) ? `${name} ${first}` : name
  const wasStarted = started.has(command)
  started.add(command)
  return wasStarted && (endsItself || hosted.includes(name) || command === 'sync --once' || isHelp)
}

export async function runInHost(run: HostedRun): Promise<HostedOutcome> {
  const host = idleHosts.pop() ?? startHost()
  waitFor(host, 'ref')
  const output = Promise.all([readRun(host, 'stdout'), readRun(host, 'stderr')])
  const ended = once(host, 'message') as Promise<[number]>
  host.send(run)
  const [[code], [stdout, stderr]] = await Promise.all([ended, output])
  waitFor(host, 'unref')
  idleHosts.push(host)
  return { code, stdout, stderr }
}

function startHost(): ChildProcess {
  const script = fileURLToPath(new URL('program-host-process.ts', import.meta.url))
  return spawn(process.execPath, [script], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: { PATH: process.env.PATH ?? '', NODE_COMPILE_CACHE: compileCache, ...quickLoading },
  })
}

/** Whether this process stays for it: not between two runs. */
function waitFor(child: ChildProcess, change: 'ref' | 'unref'): void {
  for (const handle of [child, child.channel, child.stdout, child.stderr] as ({
    ref(): void
    unref(): void
  } | null)[])
    handle?.[change]()
}

function readRun(child: ChildProcess, name: 'stdout' | 'stderr'): Promise<string> {
  const stream = child[name]
  return new Promise((resolve, reject) => {
    let text = ''
    const fail = () => finish(() => reject(new Error(`The program host ended: ${text}`)))
    const read = (chunk: string) => {
      text += chunk
      if (text.endsWith(endMark)) finish(() => resolve(text.slice(0, -endMark.length)))
    }
    const finish = (settle: () => void) => {
      stream?.off('data', read)
      child.off('close', fail)
      settle()
    }
    stream?.setEncoding('utf8').on('data', read)
    child.on('close', fail)
  })
}
