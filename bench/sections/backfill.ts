/**
 * Synchronizes a large sandbox with a real `fatura sync --once`, faults on and kills between, compares the store with
 * the sandbox's truth row by row, and says how fast it was, what memory it took, and how busy both processes were. With
 * `--follow`, new invoices are made meanwhile, and it says how soon they were seen. See README.md beside it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startStripeSandbox } from '../../sandbox/stripe/server.ts'
import { migrateStore, openWriteStore } from '../../src/store/engines.ts'
import { assertTruth, freeLease } from '../../test/support/checks/sync-truth.ts'
import { cpuSince, readMemory } from '../load/process-cost.ts'

const { values } = parseArgs({
  options: {
    invoices: { type: 'string', default: '50000' },
    kills: { type: 'string', default: '0' },
    faults: { type: 'boolean', default: false },
    /** In milliseconds, for each answer. */
    latency: { type: 'string', default: '0' },
    /** With the rates that Stripe has in live mode. */
    limits: { type: 'boolean', default: false },
    /** How many lines each invoice has; as the sandbox has them when not given. */
    lines: { type: 'string' },
    follow: { type: 'boolean', default: false },
    'database-url': { type: 'string' },
  },
})
const invoices = Number(values.invoices)
const kills = Number(values.kills)
const folder = await mkdtemp(join(tmpdir(), 'fatura-bench-'))
const url = values['database-url'] ?? `sqlite:${join(folder, 'fatura.db')}`
const limits = values.limits ? { ratePerSecond: 100, ratePerEndpoint: 25 } : {}
const sandbox = await startStripeSandbox({
  invoices,
  customers: Math.ceil(invoices / 50),
  latencyMs: Number(values.latency),
  ...limits,
  ...(values.lines !== undefined && { lines: Number(values.lines) }),
})

function startSync(): ChildProcess {
  const env = {
    ...process.env,
    DATABASE_URL: url,
    // With a live key, it keeps below these rates wherever it asks.
    STRIPE_API_KEY: values.limits ? 'sk_live_sandbox' : 'sk_test_sandbox',
    STRIPE_API_BASE: sandbox.address,
    LOG_LEVEL: 'error',
  }
  return spawn(
    process.execPath,
    [new URL('../../bin/fatura.js', import.meta.url).pathname, 'sync', '--once'],
    {
      env,
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  )
}

/** Every so often a few answers fail, each kind in turn. */
function letFail(): NodeJS.Timeout {
  const faults = [
    'error_500',
    'truncated',
    'garbled',
    'error_503',
    'wrong_type',
    'reset',
    'missing_id',
  ] as const
  const routes = ['list_invoices', 'list_lines', 'retrieve_invoice', 'list_events'] as const
  let turn = 0
  return setInterval(() => {
    const [route, fault] = [routes[turn % routes.length], faults[turn % faults.length]]
    if (route && fault) sandbox.faults.set(route, fault, { times: 2 })
    turn++
  }, 300)
}

/** Makes a new invoice every other second, and says how long each took to be in the store. */
function makeInvoices(): () => Promise<number[]> {
  const due = new Map<string, number>()
  const waits: number[] = []
  const making = setInterval(() => {
    const id = sandbox.account.change('create')
    // The connector knows customers only.
    if (sandbox.account.invoices.get(id)?.customer) due.set(id, performance.now())
  }, 2_000)
  const store = openWriteStore(url)
  const looking = setInterval(async () => {
    for (const [id, at] of due)
      if ((await (await store).findLinkedById(id)).length > 0 && due.delete(id))
        waits.push(performance.now() - at)
  }, 250)
  return async () => {
    clearInterval(making)
    clearInterval(looking)
    await (await store).close()
    // What was not seen yet took at least as long as it was there.
    return [...waits, ...[...due.values()].map(at => performance.now() - at)].sort((a, b) => a - b)
  }
}

function tellSeconds(milliseconds = 0): string {
  return `${(milliseconds / 1000).toFixed(1)} s`
}

try {
  await migrateStore(url)
  const failing = values.faults ? letFail() : undefined
  let killed = 0
  while (killed < kills) {
    const sync = startSync()
    // Starting takes a part of this; the rest falls anywhere in the work.
    await sleep(300 + ((killed * 7919) % 1_700))
    if (sync.exitCode === null) sync.kill('SIGKILL')
    const [, signal] = sync.exitCode === null ? await once(sync, 'exit') : []
    if (signal !== 'SIGKILL') break
    await freeLease(url)
    killed++
  }
  const stopMaking = values.follow ? makeInvoices() : null
  const used = process.cpuUsage()
  const started = performance.now()
  const sync = startSync()
  let peak = 0
  let busy = 0
  const watching = setInterval(() => {
    peak = Math.max(peak, readMemory(sync.pid as number).peak)
    busy = Math.max(busy, cpuSince(new Map(), sync.pid as number) / 1e6)
  }, 200)
  let [code] = await once(sync, 'exit')
  // With faults on, a run may use up its attempts: the next goes on where it was.
  for (let again = 0; code !== 0 && again < 20; again++) [code] = await once(startSync(), 'exit')
  clearInterval(watching)
  clearInterval(failing)
  const seconds = (performance.now() - started) / 1000
  const { user, system } = process.cpuUsage(used)
  const waits = (await stopMaking?.()) ?? []
  // What was made after the last round of the events is there after another.
  if (waits.length > 0) await once(startSync(), 'exit')
  await assertTruth(url, sandbox.account)
  const asked = [...sandbox.requests].map(([route, count]) => `${route} ${count}`).join(', ')
  process.stdout.write(
    `${invoices} invoices, ${killed} kills, faults ${values.faults ? 'on' : 'off'}: equal to the truth, row by row.\n` +
      `Last run: exit ${code}, ${seconds.toFixed(1)} s${killed === 0 ? `, ${Math.round(invoices / seconds)} invoices/s with the re-read of what may change` : ''}, peak memory ${Math.round(peak)} MB.\n` +
      `Busy: the connector ${busy.toFixed(1)} s (${Math.round((busy / invoices) * 1e6)} µs an invoice), the sandbox ${((user + system) / 1e6).toFixed(1)} s of a core.\n` +
      `${waits.length === 0 ? '' : `New invoices: ${waits.length}, seen after ${tellSeconds(waits.at(waits.length >> 1))} (median) and ${tellSeconds(waits.at(-1))} at most.\n`}` +
      `Asked: ${asked}.\n`,
  )
} finally {
  await sandbox.close()
  await rm(folder, { recursive: true, force: true })
}
