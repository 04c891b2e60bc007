/**
 * A large sandbox of both systems, where documents are in every state, lists lag, answers fail and things go on happening:
 * real runs of `fatura sync --once` until the store says exactly what the two systems say. See README.md beside it.
 */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { randomFaults } from '../../sandbox/faults.ts'
import { createDocuments } from '../../sandbox/invoicexpress/account.ts'
import { startInvoiceXpressSandbox } from '../../sandbox/invoicexpress/server.ts'
import { startStripeSandbox } from '../../sandbox/stripe/server.ts'
import { migrateStore, openWriteStore } from '../../src/store/engines.ts'
import { differingFields } from '../../test/support/checks/document-truth.ts'
import { spawnSync } from '../servers/processes.ts'

const { values } = parseArgs({
  options: {
    invoices: { type: 'string', default: '20000' },
    /** The share of answers that fail. */
    faults: { type: 'string', default: '0.02' },
    /** In milliseconds. */
    lag: { type: 'string', default: '2000' },
    'database-url': { type: 'string' },
  },
})
const invoices = Number(values.invoices)
const lag = Number(values.lag)
const folder = await mkdtemp(join(tmpdir(), 'fatura-bench-'))
const url = values['database-url'] ?? `sqlite:${join(folder, 'fatura.db')}`
const chaos = Number(values.faults)
const now = Math.floor(Date.now() / 1000)
const stripe = await startStripeSandbox({ invoices, customers: Math.ceil(invoices / 50), now, chaos })
const documents = createDocuments(stripe.account)
const ix = await startInvoiceXpressSandbox({ documents, lagMs: lag })
// Not `too_many`: each would take a pause of a quarter of a minute.
ix.faults.setChaos(chaos, [...randomFaults.filter(fault => fault !== 'too_many'), 'error_in_200'])

async function sync(): Promise<number> {
  const [code] = await once(spawnSync(url, stripe.address, ix.address, '--once'), 'exit')
  return code
}

try {
  await migrateStore(url)
  const started = performance.now()
  let failed = 0
  for (let round = 0; round < 3; round++) {
    if ((await sync()) !== 0) failed++
    stripe.account.advance(2 * 3_600)
    documents.follow()
  }
  await sleep(lag)
  // What is gone is missed twice, by two runs; one that used up its attempts is followed by another.
  for (let whole = 0; whole < 2; ) {
    if ((await sync()) === 0) whole++
    else failed++
  }
  const seconds = (performance.now() - started) / 1000
  const store = await openWriteStore(url)
  const differing = Object.keys(await differingFields(store, stripe.account, documents))
  await store.close()
  const asked = [...stripe.requests, ...ix.requests].map(([route, count]) => `${route} ${count}`).join(', ')
  process.stdout.write(
    `${invoices} invoices, ${documents.documents.size} documents, ${documents.states.size} of them not ordinary, lag ${lag} ms, ` +
      `${chaos * 100} % of answers fail: ${differing.length} differ from the truth.\n` +
      `${seconds.toFixed(1)} s, ${failed} runs failed and were followed by another. Asked: ${asked}.\n`,
  )
  if (differing.length > 0) {
    process.stdout.write(`${differing.slice(0, 10).join(' ')}\n`)
    process.exitCode = 1
  }
} finally {
  await stripe.close()
  await ix.close()
  await rm(folder, { recursive: true, force: true })
}
