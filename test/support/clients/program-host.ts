/**
 * The program again, in a process that has its modules loaded: a run then costs what the command does, not what a start costs.
 * The whole command line is run, with the arguments, environment and working directory of the run, and writes to real standard output,
 * a file. Two runs at once are two processes. All test files share these processes: whoever moves one out of the folder of idle ones
 * has it for a run.
 */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { needed } from '../databases/engines.ts'
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

/** Whether a host is to run it: not the first time in a test run, which is a start of the program. */
export async function takesHost([name = '', first = '', ...rest]: readonly string[]): Promise<boolean> {
  const isHelp = [first, ...rest].includes('--help')
  const words = isHelp ? ['help'] : [name, first].filter(word => /^(--once|[a-z]{2,})$/.test(word))
  try {
    await writeFile(join(folderOfHosts(), `started-${words.join('-')}`), '', { flag: 'wx' })
    return false
  } catch {
    return true
  }
}

/** Before the first test file; resolves with what ends all of them. */
export async function prepareHosts(): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'fatura-hosts-'))
  for (const state of ['idle', 'busy']) await mkdir(join(folder, state))
  process.env.TEST_HOSTS = folder
  process.env.TEST_HOSTS_RUN = String(process.pid)
  // The hosts see that their folder is gone, and end. They also end when this process was killed.
  return () => rm(folder, { recursive: true, force: true })
}

export async function runInHost(run: HostedRun): Promise<HostedOutcome> {
  const folder = folderOfHosts()
  const name = (await takeIdle(folder)) ?? (await startHost(folder))
  const [stdout, stderr] = outputsOf(folder, name)
  const socket = connect(join(folder, `${name}.socket`))
  socket.end(JSON.stringify(run))
  const code = await text(socket)
  const outcome = {
    code: Number(code),
    stdout: await readFile(stdout, 'utf8'),
    stderr: await readFile(stderr, 'utf8'),
  }
  if (code === '') throw new Error(`The program host ended: ${outcome.stderr}`)
  await rename(join(folder, 'busy', name), join(folder, 'idle', name))
  return outcome
}

function folderOfHosts(): string {
  return needed('TEST_HOSTS')
}

async function takeIdle(folder: string): Promise<string | undefined> {
  for (const name of await readdir(join(folder, 'idle')))
    try {
      await rename(join(folder, 'idle', name), join(folder, 'busy', name))
      return name
    } catch {
      // Another file was first.
    }
}

async function startHost(folder: string): Promise<string> {
  const name = randomUUID().slice(0, 8)
  const script = fileURLToPath(new URL('program-host-process.ts', import.meta.url))
  const outputs = await Promise.all(outputsOf(folder, name).map(path => open(path, 'a')))
  const child = spawn(process.execPath, [script, folder, name, needed('TEST_HOSTS_RUN')], {
    stdio: ['ignore', ...outputs.map(({ fd }) => fd), 'ipc'],
    env: { PATH: process.env.PATH ?? '', NODE_COMPILE_CACHE: compileCache, ...quickLoading },
    // It outlives this test file.
    detached: true,
  })
  await new Promise((resolve, reject) => child.once('message', resolve).once('exit', reject))
  child.disconnect()
  child.unref()
  await Promise.all(outputs.map(output => output.close()))
  await writeFile(join(folder, 'busy', name), '')
  return name
}

function outputsOf(folder: string, name: string): [stdout: string, stderr: string] {
  return [join(folder, `${name}.stdout`), join(folder, `${name}.stderr`)]
}
