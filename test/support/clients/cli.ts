/** The program as people run it: a process of its own, with nothing of this process's environment. */
import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createToken } from '../../../src/http/access/token.ts'
import { openWriteStore, prepareStore } from '../../../src/store/engines.ts'
import type { WriteStore } from '../../../src/store/store.ts'
import { importInvoices } from '../../../src/sync/import/import-invoices.ts'
import { createFolder } from '../databases/engines.ts'
import { compileCache, quickLoading } from './compile-cache.ts'
import { runInHost, takesHost } from './program-host.ts'

export const entryPoint = fileURLToPath(new URL('../../../bin/fatura.js', import.meta.url))

/** Text that was broken into lines to fit 80 columns, with each paragraph on one line again. */
export function unwrapped(text: string): string {
  return text.replace(/\n {2,}/g, ' ')
}

/** No line is wider than a terminal. */
export function assertFits(text: string): void {
  for (const line of text.split('\n')) assert.ok(line.length <= 80, `${line.length} characters: ${line}`)
}

/** Far longer than anything here takes, so that only a hang reaches it. */
const patience = 300_000

/** A file `.env` that stops whoever reads it: for commands that need no keys and read none. */
export const unreadEnvFile = 'HOST=192.0.2.1\nSTRIPE_API_KEY=rk_live_canary\nmalformed\n'

export interface Outcome {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  /** Without lines of progress: only a slow machine prints those. */
  stderr: string
}

/** As in "9500 invoices saved … 10.7 s, 892 invoices/s". */
const progressLines = /^\d+ \w+ [^\n]+ … [\d.]+ s, \d+ \w+\/s[^\n]*\n/gm

function withoutProgress(outcome: Outcome): Outcome {
  return { ...outcome, stderr: outcome.stderr.replace(progressLines, '') }
}

export interface ProgramOptions {
  env?: Record<string, string>
  /** What is written to standard input, which then ends. Null leaves it open; a number is a file descriptor. */
  input?: string | Uint8Array | number | null
  /** The node that runs it; this one by default. */
  node?: string
  /** How long `run` waits, in milliseconds, before it takes the program for hanging. */
  patience?: number
}

export interface Program {
  pid: number
  child: ChildProcessWithoutNullStreams
  /** What it wrote so far. */
  readonly stdout: string
  readonly stderr: string
  /** What it was given and may never write. */
  secrets: readonly string[]
  exited: Promise<Outcome>
  /** Resolves with the match once standard output has one; rejects when the program ends without. */
  waitFor(pattern: RegExp): Promise<RegExpExecArray>
  /** Sends a signal and resolves at the program's end. */
  stop(signal?: NodeJS.Signals): Promise<Outcome>
}

export interface Answer {
  status: number
  headers: Headers
  text: string
  /** The body as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test states what it expects of it
  json: any
}

export interface Serving extends Program {
  /** As in http://127.0.0.1:12345. */
  address: string
  port: number
  get(path: string, token?: string): Promise<Answer>
}

export interface Cli {
  /** The working directory; it goes away with the test. */
  folder: string
  /** The database's path when no DATABASE_URL is set. */
  database: string
  /** Runs it to its end: the first time that a command is run in a test run by a start of its own, then in the program host. */
  run(args: readonly string[], options?: ProgramOptions): Promise<Outcome>
  start(args: readonly string[], options?: ProgramOptions): Program
  /** Runs `serve` on a free port, and resolves once it listens. */
  serve(args?: readonly string[], options?: ProgramOptions): Promise<Serving>
  /** Imports the values, as `import` does but within this process, and fails the test unless all were taken. */
  load(...values: readonly object[]): Promise<void>
  /** A token for these customers, or for every customer; as `token create` makes it, but within this process. */
  createToken(...customers: string[]): Promise<string>
}

/** Whatever is started here is ended with the test. */
export async function createCli(t: TestContext): Promise<Cli> {
  const programs: Program[] = []
  t.after(async () => {
    for (const { child } of programs) child.kill('SIGKILL')
    await Promise.all(programs.map(({ exited }) => exited))
    for (const { stdout, stderr, secrets } of programs) assertSecret(stdout + stderr, secrets)
  })
  const folder = await createFolder(t)

  function start(args: readonly string[], options: ProgramOptions = {}): Program {
    const program = startProgram(folder, args, options)
    programs.push(program)
    return program
  }

  async function run(args: readonly string[], options: ProgramOptions = {}): Promise<Outcome> {
    const { env = {}, input = '', node } = options
    // What Node itself is told holds for a process of its own alone.
    const isOrdinary = node === undefined && env.NODE_OPTIONS === undefined && typeof input === 'string'
    if (isOrdinary && (await takesHost(args))) {
      const ended = await runInHost({ args, env: environmentOf(folder, env), folder, input })
      assertSecret(ended.stdout + ended.stderr, secretsOf(env))
      return withoutProgress({ signal: null, ...ended })
    }
    const program = start(args, options)
    const giveUp = setTimeout(() => program.child.kill('SIGKILL'), options.patience ?? patience)
    const outcome = await program.exited
    clearTimeout(giveUp)
    assert.equal(outcome.signal, null, `fatura ${args.join(' ')} did not end by itself: ${outcome.stderr}`)
    return withoutProgress(outcome)
  }

  const database = join(folder, 'data', 'fatura.db')

  return {
    folder,
    database,
    start,
    run,
    async serve(args = [], options = {}) {
      const program = start(['serve', '--port', '0', ...args], options)
      const [, address = ''] = await program.waitFor(/"address":"(http:[^"]+)","msg":"listening"/)
      return serving(program, address)
    },
    async load(...values) {
      async function* read() {
        yield Buffer.from(ndjson(...values))
      }
      const refusals: unknown[] = []
      const onRefusal = (...refusal: unknown[]) => void refusals.push(refusal)
      const { committed } = await write(`sqlite:${database}`, store =>
        importInvoices(read, store, { skipInvalid: false, onRefusal, onProgress() {} }),
      )
      assert.ok(committed, JSON.stringify(refusals))
    },
    createToken: (...customers) =>
      createStoredToken(`sqlite:${database}`, customers.length === 0 ? null : customers),
  }
}

/** A process only to prepare a test costs more than most of what the test looks at. */
async function write<T>(url: string, change: (store: WriteStore) => Promise<T>): Promise<T> {
  await prepareStore(url)
  const store = await openWriteStore(url)
  try {
    return await change(store)
  } finally {
    await store.close()
  }
}

/** As `token create` makes it, within this process; for every customer unless told otherwise. */
export async function createStoredToken(
  url: string,
  customers: readonly string[] | null = null,
): Promise<string> {
  const { id, token, hash } = createToken()
  const [created_at, expires_at] = [Date.now(), Date.now() + 86_400_000]
  await write(url, store =>
    store.saveToken({ id, name: '', hash, customers, created_at, expires_at, revoked_at: null }),
  )
  return token
}

const secretSettings = [
  'STRIPE_API_KEY',
  'STRIPE_WEBHOOK_SECRET',
  'INVOICEXPRESS_API_KEY',
  'CUSTOMER_LINK_KEY',
  'ADMIN_TOKEN',
]

/** No key in any line of any program of the whole test run; nor an address that would hold one. */
function assertSecret(text: string, secrets: readonly string[]): void {
  for (const secret of secrets) assert.ok(!text.includes(secret), 'a key or a secret is written')
  // The sandbox's own key is no secret: it says itself how to use it.
  assert.doesNotMatch(text, /api_key=(?!ix_test_sandbox)/, 'an address with a key is written')
}

function environmentOf(folder: string, env: Record<string, string>): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    HOME: folder,
    TMPDIR: folder,
    NODE_COMPILE_CACHE: compileCache,
    ...quickLoading,
    // A test that is not about it does not wait for it.
    SHUTDOWN_DELAY: '0s',
    ...env,
  }
}

function secretsOf(env: Record<string, string>): string[] {
  return secretSettings.flatMap(name => env[name] || [])
}

function startProgram(folder: string, args: readonly string[], options: ProgramOptions): Program {
  const { env = {}, input = '', node = process.execPath } = options
  const child = spawn(node, [entryPoint, ...args], {
    cwd: folder,
    stdio: [typeof input === 'number' ? input : 'pipe', 'pipe', 'pipe'],
    env: environmentOf(folder, env),
  }) as ChildProcessWithoutNullStreams
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', text => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', text => {
    stderr += text
  })
  if (typeof input !== 'number') {
    // A program may end without having read all of its input.
    child.stdin.on('error', () => {})
    if (input !== null) child.stdin.end(input)
  }
  const exited = new Promise<Outcome>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  })

  return {
    pid: child.pid ?? Number.NaN,
    child,
    secrets: secretsOf(env),
    exited,
    get stdout() {
      return stdout
    },
    get stderr() {
      return stderr
    },
    waitFor: pattern =>
      waitFor(
        () => pattern.exec(stdout),
        child,
        () => `${stdout}\n${stderr}`,
      ),
    async stop(signal = 'SIGTERM') {
      child.kill(signal)
      return exited
    },
  }
}

function waitFor(
  find: () => RegExpExecArray | null,
  child: ChildProcessWithoutNullStreams,
  describe: () => string,
): Promise<RegExpExecArray> {
  return new Promise((resolve, reject) => {
    const fail = () => finish(() => reject(new Error(`not what was waited for: ${describe()}`)))
    const giveUp = setTimeout(fail, patience)
    const look = () => {
      const found = find()
      if (found !== null) finish(() => resolve(found))
    }
    const finish = (settle: () => void) => {
      clearTimeout(giveUp)
      child.stdout.off('data', look)
      child.off('close', fail)
      settle()
    }
    child.stdout.on('data', look)
    child.on('close', fail)
    look()
  })
}

export function serving(program: Program, address: string): Serving {
  // Not spread: what the program wrote so far is read again each time.
  return Object.create(program, {
    address: { value: address },
    port: { value: Number(new URL(address).port) },
    get: { value: (path: string, token?: string) => get(address + path, token) },
  })
}

export async function get(url: string, token?: string): Promise<Answer> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(patience) })
  const text = await response.text()
  const isJson = response.headers.get('content-type') === 'application/json'
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: isJson ? JSON.parse(text) : undefined,
  }
}

/** Asks again and again until the answer is true, less and less often: what takes long leaves the CPU to others. */
export async function eventually(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const giveUp = AbortSignal.timeout(patience)
  for (let pauseMs = 10; !(await holds()); pauseMs = Math.min(1.2 * pauseMs, 100)) {
    assert.ok(!giveUp.aborted, `waited in vain until ${what}`)
    await sleep(pauseMs)
  }
}

/** A port that is in use until the test's end. */
export async function occupyPort(t: TestContext): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** Whether nobody listens on the port. */
export function isRefused(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => {
      socket.destroy()
      resolve(false)
    })
    socket.on('error', () => resolve(true))
  })
}

export function ndjson(...values: readonly unknown[]): string {
  return values.map(value => `${JSON.stringify(value)}\n`).join('')
}

/** Asserts an end that is the user's to fix: exit code 1, nothing on standard output, one line that says what to do. */
export function assertOneLine(outcome: Outcome, ...patterns: readonly RegExp[]): void {
  assert.match(outcome.stderr, /^fatura: [^\n]+\n$/)
  for (const pattern of patterns) assert.match(outcome.stderr, pattern)
  assert.equal(outcome.stdout, '')
  assert.equal(outcome.code, 1)
}
