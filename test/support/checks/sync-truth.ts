/** The sandbox's truth against the store, and the programs that bring the one into the other. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { pino } from 'pino'
import type { Stripe } from 'stripe'
import type { StripeAccount } from '../../../sandbox/stripe/account.ts'
import {
  type SandboxOptions,
  type StripeSandbox,
  startStripeSandbox,
} from '../../../sandbox/stripe/server.ts'
import { syncOnce } from '../../../src/cli/start/start-sync.ts'
import type { InvoiceKey, InvoiceRecord } from '../../../src/domain/invoice.ts'
import { defaultRules } from '../../../src/domain/link/link.ts'
import type { InvoiceXpressOptions } from '../../../src/sources/invoicexpress/client.ts'
import { defaultKeys } from '../../../src/sources/stripe/map-claim.ts'
import { mapLine, percentageOf } from '../../../src/sources/stripe/map-invoice.ts'
import { mapPaymentFacts } from '../../../src/sources/stripe/map-payment.ts'
import { openOperatorStore, openWriteStore, prepareStore } from '../../../src/store/engines.ts'
import type { Stream } from '../../../src/store/store.ts'
import { readState, type SyncState } from '../../../src/sync/read-state.ts'
import { type Cli, createCli, type Outcome, type Program, type ProgramOptions } from '../clients/cli.ts'
import { mapStored } from '../worlds/map-stored.ts'
import { paymentsOf } from '../worlds/sync.ts'

export type Records = Map<string, InvoiceRecord>

/** Every invoice of the account as the store should have it. Exact unless a customer was renamed after a finalization. */
export function truthOf(account: StripeAccount): Records {
  const records: Records = new Map()
  for (const id of account.invoices.keys()) {
    const record = trueRecord(account, id)
    if (record !== null) records.set(id, record)
  }
  return records
}

/** Null when it is deleted, or none of ours. */
export function trueRecord(account: StripeAccount, id: string): InvoiceRecord | null {
  const found = account.invoices.get(id)
  if (found === undefined) return null
  const customer = typeof found.customer === 'string' ? account.customers.get(found.customer) : null
  const source = { ...found, customer } as unknown as Stripe.Invoice
  const rates = [...account.taxRates.values()].map(
    rate => [rate.id, percentageOf(rate as unknown as Stripe.TaxRate)] as const,
  )
  const lines = source.lines.data.map(mapLine)
  const mapped = mapStored(source, new Map(rates), null, lines)
  if ('refusal' in mapped) return null
  const payment = mapPaymentFacts(source, mapped.invoice, new Map(rates), paymentsOf(found))
  return { invoice: mapped.invoice, lines, payment }
}

export async function readStored(url: string): Promise<{ records: Records; streams: Stream[] }> {
  const store = await openWriteStore(url)
  try {
    const records: Records = new Map()
    const streams = await store.listStreams()
    let after: InvoiceKey | null = null
    for (;;) {
      const rows = await store.readInvoices(after, 1_000)
      for (const { id, summary, lines, payment } of rows) {
        assert.ok(!records.has(id), `${id} is there twice`)
        records.set(id, {
          invoice: JSON.parse(summary),
          lines: lines === null ? null : JSON.parse(lines),
          payment: JSON.parse(payment),
        })
      }
      const last = rows.at(-1)
      if (last === undefined) return { records, streams }
      after = { customer_id: last.customer_id, id: last.id }
    }
  } finally {
    await store.close()
  }
}

/** As if a connector that was killed had been silent for 15 s: the next one begins at once. */
export async function freeLease(url: string): Promise<void> {
  const store = await openWriteStore(url)
  const { epoch } = await store.readLease()
  await store.releaseLease(epoch)
  await store.close()
}

/** What `status` tells, within this process: for tests of what it is that it tells. */
export async function readStatus(url: string): Promise<SyncState> {
  const store = await openOperatorStore(url)
  try {
    return await readState(store)
  } finally {
    await store.close()
  }
}

/** Row by row, lines included. */
export async function assertTruth(url: string, account: StripeAccount): Promise<void> {
  const truth = truthOf(account)
  const { records } = await readStored(url)
  assert.deepEqual([...records.keys()].sort(), [...truth.keys()].sort())
  for (const [id, record] of truth) assert.deepEqual(records.get(id), record, id)
}

/** A whole account takes its time on a busy machine: only a hang reaches this. */
const patience = 300_000

export const apiKey = 'sk_test_canaryKey0123456789'
export const webhookSecret = 'whsec_canarySecret0123456789'

export interface Receiver extends Program {
  port: number
  /** Where webhooks are received. */
  url: string
}

export interface SyncWorld {
  sandbox: StripeSandbox
  account: StripeAccount
  cli: Cli
  /** Where the store is. */
  url: string
  env: Record<string, string>
  run(args: readonly string[], options?: ProgramOptions): Promise<Outcome>
  start(args: readonly string[], options?: ProgramOptions): Program
  /** `sync` or `up` on a prepared store, with a port for webhooks; resolves once it receives them. */
  receive(args?: readonly string[]): Promise<Receiver>
}

/**
 * A sandbox and a store, and programs that know both. With the test's end, whatever these wrote is searched for what no
 * log may hold.
 */
export async function createSyncWorld(
  t: TestContext,
  options: SandboxOptions = {},
  url?: string,
): Promise<SyncWorld> {
  const sandbox = await startStripeSandbox({ now: Math.floor(Date.now() / 1000), apiKey, ...options })
  const cli = await createCli(t)
  const written: { stdout: string; stderr: string }[] = []
  t.after(async () => {
    await sandbox.close()
    for (const { stdout, stderr } of written) assertClean(stdout + stderr, sandbox.account)
  })
  const env = {
    STRIPE_API_KEY: options.apiKey ?? apiKey,
    STRIPE_WEBHOOK_SECRET: webhookSecret,
    STRIPE_API_BASE: sandbox.address,
    LOG_LEVEL: 'debug',
    ...(url !== undefined && { DATABASE_URL: url }),
  }
  const start = (args: readonly string[], more: ProgramOptions = {}) => {
    const program = cli.start(args, { ...more, env: { ...env, ...more.env } })
    written.push(program)
    return program
  }
  return {
    sandbox,
    account: sandbox.account,
    cli,
    url: url ?? `sqlite:${cli.database}`,
    env,
    start,
    async run(args, more = {}) {
      const outcome = await cli.run(args, { patience, ...more, env: { ...env, ...more.env } })
      written.push(outcome)
      return outcome
    },
    async receive(args = ['sync']) {
      await prepareStore(url ?? `sqlite:${cli.database}`)
      const program = start([...args, '--webhooks', '0'])
      const [, port] = await program.waitFor(/"port":(\d+)},"msg":"receiving webhooks"/)
      return Object.create(program, {
        port: { value: Number(port) },
        url: { value: `http://127.0.0.1:${port}/` },
      })
    },
  }
}

/**
 * What `sync --once` does, within this process: for tests of what comes after it, to which a process more would show nothing.
 * Without an invoicing system unless told.
 */
export async function fillStore(
  { url, sandbox, key = apiKey }: Pick<SyncWorld, 'url' | 'sandbox'> & { key?: string },
  invoiceXpress: InvoiceXpressOptions | null = null,
): Promise<void> {
  await prepareStore(url)
  await syncOnce({
    url,
    stripe: { apiKey: key, base: sandbox.address },
    invoiceXpress,
    rules: { ...defaultRules, isConnected: invoiceXpress !== null },
    keys: defaultKeys,
    webhooks: null,
    changesKeptMs: 86_400_000,
    outgoingWebhooksPrivate: false,
    log: pino({ level: 'silent' }),
    signal: new AbortController().signal,
  })
}

/** Nothing of it may be in a log, nor in what a command tells. */
export function assertClean(text: string, account: StripeAccount): void {
  assert.ok(!/canary(Key|Secret)/.test(text), 'a key or a secret is written')
  assert.doesNotMatch(text, /[\w.+-]+@[\w-]+\.\w/, 'an e-mail address is written')
  const taxIds = new Set(
    [...account.invoices.values()].flatMap(({ customer_tax_ids }) =>
      (customer_tax_ids ?? []).map(({ value }) => value),
    ),
  )
  assert.ok(taxIds.size > 0)
  for (const taxId of taxIds) assert.ok(!text.includes(taxId), 'a tax id is written')
}
