/** The systems of the demo: a local Stripe and a local InvoiceXpress, synchronized into a store, that go on changing. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { createDocuments } from '../../../sandbox/invoicexpress/account.ts'
import { startInvoiceXpressSandbox } from '../../../sandbox/invoicexpress/server.ts'
import { startStripeSandbox } from '../../../sandbox/stripe/server.ts'
import { createToken } from '../../access/token.ts'
import type { PageBrand } from '../../http/web-files.ts'
import type { Invoice, InvoiceKey } from '../../invoice.ts'
import { createDocumentSource } from '../../invoicexpress/document-source.ts'
import { usualRules } from '../../linking/link.ts'
import { migrateStore, openWriteStore } from '../../store/engines.ts'
import { createBillingSource } from '../../stripe/billing-source.ts'
import { createWebhookServer } from '../../stripe/webhook.ts'
import { createConnector } from '../../sync/connector.ts'
import { createDocumentSync } from '../../sync/documents.ts'

/** Changes: the delay of the first, their interval, and the simulated time that passes each time. */
const firstChangeMs = 20_000
const changeEveryMs = 5_000
const timeStepSeconds = 3 * 60 * 60

export type DemoSystems = Awaited<ReturnType<typeof startDemoSystems>>

export async function startDemoSystems(url: string, log: Logger, onEvent: (line: string) => void) {
  const stopping = new AbortController()
  const sandbox = await startStripeSandbox({ seed: 2026, invoices: 280, customers: 6 })
  const documents = createDocuments(sandbox.account, { seed: 2026 })
  const ix = await startInvoiceXpressSandbox({ documents })
  const stripe = { apiKey: 'sk_test_sandbox', base: sandbox.address }
  const invoiceXpress = { account: null, apiKey: 'ix_test_sandbox', base: ix.address }
  await migrateStore(url)
  const store = await openWriteStore(url)
  const source = createBillingSource(stripe)
  // The sandbox's clock begins at a moment of its own: what is recent there is not too old here.
  const creatingTimeoutMs = usualRules.creatingTimeoutMs + Date.now() - sandbox.account.clock * 1000
  const rules = { ...usualRules, creatingTimeoutMs }
  const connector = await createConnector({ source, store, rules, log, signal: stopping.signal })
  await connector.backfill()
  await connector.catchUp()
  const documentSync = await createDocumentSync({
    source: createDocumentSource(invoiceXpress),
    store,
    rules,
    log,
    signal: stopping.signal,
    missesApartMs: 0,
  })
  while ((await documentSync.sweepMonth()) !== null);
  const readDocuments = async () => {
    await documentSync.sweepRecent()
    return documentSync.refreshOpen()
  }
  // A document that is missed twice is gone.
  for (let round = 0; round < 2; round++) await readDocuments()
  const invoices = (await store.readInvoices(null, 10_000)).map(({ summary }): Invoice => JSON.parse(summary))

  const secret = 'whsec_demo'
  const receiver = createWebhookServer({ stripe, secret, apply: connector.applyNotification, log })
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  sandbox.subscribe(`http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`, secret)
  const change = async () => {
    const since = sandbox.account.events.length
    sandbox.account.advance(timeStepSeconds)
    for (const { event, status } of await sandbox.deliver({ since }))
      if (status === 200) onEvent(`webhook: ${event.type}, applied`)
    // Nothing is missing: this moves the freshness forward.
    await connector.catchUp()
    if (documents.follow() === 0) return
    const { changed } = await readDocuments()
    if (changed > 0) onEvent(`documents: ${changed} invoices changed`)
  }
  const changes = repeatChange(change, stopping.signal)

  const customers = describeCustomers(invoices)
  const { id, token, hash } = createToken()
  await store.saveToken({
    ...{ id, name: 'demo', hash, customers: customers.map(({ customer_id }) => customer_id) },
    ...{ created_at: Date.now(), expires_at: null, revoked_at: null },
  })
  return {
    stripe,
    invoiceXpress,
    token,
    customers,
    /** An invoice with lines and both PDFs, of the last customer but one. */
    sample: pickSample(invoices, customers.at(-2)?.customer_id ?? ''),
    async stop() {
      stopping.abort()
      await changes
      receiver.close()
      receiver.closeAllConnections()
      await sandbox.close()
      await ix.close()
      await store.close()
    },
  }
}

/** Runs a step now and then; stops after the one that is under way. */
async function repeatChange(step: () => Promise<void>, signal: AbortSignal): Promise<void> {
  for (let pauseMs = firstChangeMs; !signal.aborted; pauseMs = changeEveryMs) {
    await sleep(pauseMs, undefined, { signal })
      .then(step, () => {})
      .catch(() => {})
  }
}

/** Customers with the most invoices first. */
function describeCustomers(invoices: readonly Invoice[]) {
  return [...Map.groupBy(invoices, ({ customer_id }) => customer_id)]
    .map(([customer_id, its]) => {
      return { customer_id, name: its[0]?.display_name, currency: its[0]?.currency, invoices: its.length }
    })
    .sort((a, b) => b.invoices - a.invoices)
}

function pickSample(invoices: readonly Invoice[], customerId: string): InvoiceKey {
  const found = invoices.find(
    ({ customer_id, status, ix_id, ix_status }) =>
      customer_id === customerId && status === 'paid' && ix_id !== null && ix_status === 'settled',
  )
  if (found === undefined) throw new Error('the sandbox has no paid invoice with a document')
  return found
}

const logo = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#1d4e89"/><path d="M6 22h20M8 22a8 8 0 0 1 16 0" fill="none" stroke="#fff" stroke-width="2.5" stroke-linecap="round"/><path d="M16 5v4M6.5 9.5l2.5 2.5M25.5 9.5 23 12" stroke="#ffc94d" stroke-width="2.5" stroke-linecap="round"/></svg>`

export const demoBrand: PageBrand = {
  name: 'Aurora Software',
  logo: { type: 'image/svg+xml', content: Buffer.from(logo) },
  accent: '#1d4e89',
  support: 'faturas@aurora.example',
  timeZone: 'Europe/Lisbon',
}
