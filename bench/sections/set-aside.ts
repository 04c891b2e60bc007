/**
 * How long a webhook's invoice takes from the notification to its commit, without and with records that are set aside and due, in turns.
 * Run: npx node bench/sections/set-aside.ts [--records 100000] [--notifications 600] [--database-url …]
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { startStripeSandbox } from '../../sandbox/stripe/server.ts'
import { defaultRules } from '../../src/domain/link/link.ts'
import { createBillingSource } from '../../src/sources/stripe/billing-source.ts'
import { defaultKeys } from '../../src/sources/stripe/map-claim.ts'
import { migrateStore, openWriteStore } from '../../src/store/engines.ts'
import { createStamps } from '../../src/store/stamps.ts'
import { createDeletionGuard } from '../../src/sync/deletion-guard.ts'
import { createConnector } from '../../src/sync/invoices/connector.ts'
import { readFlags } from '../options.ts'

const values = readFlags({ records: '100000', notifications: '600', 'database-url': '' })
const [records, notifications] = [Number(values.records), Number(values.notifications)]
const rounds = 3
const batch = 1_000
const folder = await mkdtemp(join(tmpdir(), 'fatura-bench-'))
const url = values['database-url'] || `sqlite:${join(folder, 'fatura.db')}`
const sandbox = await startStripeSandbox({ invoices: 1_000, now: Math.floor(Date.now() / 1000) })
await migrateStore(url)
const store = await openWriteStore(url)
const log = pino({ level: 'error' })
const connector = await createConnector({
  source: createBillingSource({ apiKey: 'sk_test_sandbox', base: sandbox.address }, defaultKeys, {
    perSecond: 10_000,
    attempts: 1,
    patienceMs: 20_000,
  }),
  ...{ store, log, rules: defaultRules, signal: new AbortController().signal },
  guard: await createDeletionGuard(store, log, false),
  nextStamp: createStamps(await store.readLastObserved()),
})

const keys = Array.from({ length: records }, (_, i) => {
  return { system: 'stripe', kind: 'invoice', id: `in_due${i}`, reason: 'odd', due_at: 1 }
})

async function inBatches(run: (some: typeof keys) => Promise<void>): Promise<void> {
  for (let start = 0; start < keys.length; start += batch) await run(keys.slice(start, start + batch))
}

const setAside = () =>
  inBatches(some =>
    store.transaction(async tx => {
      for (const key of some) await tx.setAside(key, 1)
    }),
  )
const clear = () => inBatches(some => store.transaction(tx => tx.clearSetAside(some)))

/** In milliseconds, the quickest first. */
async function notifyAll(): Promise<number[]> {
  const invoices = [...sandbox.account.invoices.values()].filter(({ customer }) => customer !== null)
  const taken: number[] = []
  for (let i = 0; i < notifications; i++) {
    const invoice = invoices[i % invoices.length]
    if (invoice === undefined) break
    invoice.number = `N-${performance.now()}-${i}`
    const started = performance.now()
    const about = { invoice_id: invoice.id, customer_id: String(invoice.customer) }
    const id = `evt_bench_${started}_${i}`
    await connector.applyNotification({
      id,
      type: 'invoice.updated',
      created: sandbox.account.clock,
      ...about,
    })
    taken.push(performance.now() - started)
  }
  return taken.sort((a, b) => a - b)
}

try {
  await connector.backfill()
  for (let round = 0; round < rounds; round++)
    for (const [what, prepare] of [
      ['nothing', clear],
      [`${records} records`, setAside],
    ] as const) {
      await prepare()
      const taken = await notifyAll()
      const at = (share: number) => taken[Math.floor(taken.length * share)]?.toFixed(2)
      process.stdout.write(`${what} set aside: ${at(0.1)} ms (p10), ${at(0.5)} ms (median)\n`)
    }
} finally {
  await store.close()
  await sandbox.close()
  await rm(folder, { recursive: true, force: true })
}
