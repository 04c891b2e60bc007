/**
 * How long until a change at InvoiceXpress is seen: a real `fatura sync` that goes on, changes at random moments, and the
 * store watched until it tells of them. Takes as long as it is told. See README.md beside it.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createDocuments } from '../../sandbox/invoicexpress/account.ts'
import { startInvoiceXpressSandbox } from '../../sandbox/invoicexpress/server.ts'
import { isCertifiable } from '../../sandbox/invoicexpress/states.ts'
import { startStripeSandbox } from '../../sandbox/stripe/server.ts'
import type { Invoice } from '../../src/domain/invoice.ts'
import { migrateStore, openWriteStore } from '../../src/store/engines.ts'
import { readFlags } from '../options.ts'
import { spawnSync } from '../servers/processes.ts'

const values = readFlags({
  invoices: '2000',
  minutes: '12',
})
const folder = await mkdtemp(join(tmpdir(), 'fatura-bench-'))
const url = `sqlite:${join(folder, 'fatura.db')}`
const now = Math.floor(Date.now() / 1000)
const stripe = await startStripeSandbox({ invoices: Number(values.invoices), now })
const documents = createDocuments(stripe.account, { states: 'ordinary' })
const ix = await startInvoiceXpressSandbox({ documents })
await migrateStore(url)
const program = spawnSync(url, stripe.address, ix.address)
const store = await openWriteStore(url)

async function read(id: string): Promise<Invoice | null> {
  const [found] = await store.findLinkedById(id)
  return found === undefined ? null : JSON.parse(found.summary)
}

/** In seconds. */
async function waitFor(id: string, isSeen: (invoice: Invoice) => boolean): Promise<number> {
  const started = performance.now()
  for (;;) {
    const invoice = await read(id)
    if (invoice !== null && isSeen(invoice)) return (performance.now() - started) / 1000
    await sleep(200)
  }
}

/** An open invoice of a customer, whose document is dated long ago. */
function* oldOpen(): Generator<[string, number]> {
  for (const { id, status, metadata, created, customer } of stripe.account.invoices.values())
    if (status === 'open' && customer !== null && metadata.ix_id !== undefined && created < now - 10 * 86_400)
      yield [id, Number(metadata.ix_id)]
}

/** Whether it is of a customer, and no negative one: no document certifies that. */
function isCertified(id: string): boolean {
  const invoice = stripe.account.invoices.get(id)
  return invoice !== undefined && invoice.customer !== null && isCertifiable(invoice)
}

const kinds: Record<string, () => Promise<number>> = {
  async 'a document made today'() {
    let id = stripe.account.change('finalize')
    while (!isCertified(id)) id = stripe.account.change('finalize')
    const document = documents.change('create', id)
    return waitFor(id, ({ ix_id }) => ix_id === document)
  },
  async 'an old open document settled'() {
    const [id, document] = candidates.next().value ?? ['', 0]
    documents.change('settle', document)
    return waitFor(id, ({ ix_status }) => ix_status === 'settled')
  },
}
const candidates = oldOpen()

try {
  const streams = async () => (await store.listStreams()).filter(({ succeeded_at }) => succeeded_at !== null)
  while (!(await streams()).some(({ name }) => name === 'ix:all')) await sleep(200)
  const until = Date.now() + Number(values.minutes) * 60_000
  await Promise.all(
    Object.entries(kinds).map(async ([what, change]) => {
      const seen: number[] = []
      while (Date.now() < until) {
        await sleep(Math.random() * 20_000)
        seen.push(await change())
      }
      seen.sort((a, b) => a - b)
      const median = seen[Math.floor(seen.length / 2)] ?? 0
      process.stdout.write(
        `${what}: ${seen.length} times, seen after ${median.toFixed(0)} s (median), ${seen.at(-1)?.toFixed(0)} s at most\n`,
      )
    }),
  )
} finally {
  program.kill()
  await store.close()
  await stripe.close()
  await ix.close()
  await rm(folder, { recursive: true, force: true })
}
