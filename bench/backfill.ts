/**
 * Synchronizes a large sandbox with a real `fatura sync --once`, faults on and kills between, compares the store with
 * the sandbox's truth row by row, and says how fast it was and what memory it took. See README.md beside it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startStripeSandbox } from '../src/sandbox/stripe-server.ts'
import { migrateStore } from '../src/store/open-store.ts'
import { assertTruth } from '../test/support/sync-truth.ts'

const { values } = parseArgs({
  options: {
    invoices: { type: 'string', default: '50000' },
    kills: { type: 'string', default: '0' },
    faults: { type: 'boolean', default: false },
    'database-url': { type: 'string' },
  },
})
const invoices = Number(values.invoices)
const kills = Number(values.kills)
const folder = await mkdtemp(join(tmpdir(), 'fatura-bench-'))
const url = values['database-url'] ?? `sqlite:${join(folder, 'fatura.db')}`
const sandbox = await startStripeSandbox({ invoices, customers: Math.ceil(invoices / 50) })

function startSync(): ChildProcess {
  const env = {
    ...process.env,
    DATABASE_URL: url,
    STRIPE_API_KEY: 'sk_test_sandbox',
    STRIPE_API_BASE: sandbox.address,
    LOG_LEVEL: 'error',
  }
  return spawn(process.execPath, [new URL('../bin/fatura.js', import.meta.url).pathname, 'sync', '--once'], {
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
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

/** The most memory a process held so far, in MB; 0 where that cannot be read. */
async function peakMemory({ pid }: ChildProcess): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1000
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
    killed++
  }
  const started = performance.now()
  const sync = startSync()
  let peak = 0
  const watching = setInterval(async () => {
    peak = Math.max(peak, await peakMemory(sync))
  }, 200)
  let [code] = await once(sync, 'exit')
  // With faults on, a run may use up its attempts: the next goes on where it was.
  for (let again = 0; code !== 0 && again < 20; again++) [code] = await once(startSync(), 'exit')
  clearInterval(watching)
  clearInterval(failing)
  const seconds = (performance.now() - started) / 1000
  await assertTruth(url, sandbox.account)
  const asked = [...sandbox.requests].map(([route, count]) => `${route} ${count}`).join(', ')
  process.stdout.write(
    `${invoices} invoices, ${killed} kills, faults ${values.faults ? 'on' : 'off'}: equal to the truth, row by row.\n` +
      `Last run: exit ${code}, ${seconds.toFixed(1)} s${killed === 0 ? `, ${Math.round(invoices / seconds)} invoices/s with the re-read of what may change` : ''}, peak memory ${Math.round(peak)} MB.\n` +
      `Asked: ${asked}.\n`,
  )
} finally {
  await sandbox.close()
  await rm(folder, { recursive: true, force: true })
}
