/** The local Stripe, asked by the official client. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it, type TestContext } from 'node:test'
import Stripe from 'stripe'
import { type Fault, faultNames, type RouteName } from '../../sandbox/faults.ts'
import { formatAmount } from '../../sandbox/pdf.ts'
import { createAccount, type StripeAccount } from '../../sandbox/stripe/account.ts'
import type { StripeInvoice } from '../../sandbox/stripe/objects.ts'
import {
  type SandboxOptions,
  type StripeSandbox,
  sandboxKeys,
  startStripeSandbox,
} from '../../sandbox/stripe/server.ts'
import { sandboxCommand } from '../../src/cli/commands/sandbox.ts'
import { CliError } from '../../src/cli/terminal/cli-error.ts'
import { assertOneLine, createCli, isRefused } from '../support/clients/cli.ts'
import { countBytes, faultEffects } from '../support/upstreams/faulty-body.ts'
import { stopClock, until } from '../support/worlds/stopped-clock.ts'

const key = 'sk_test_sandbox'

async function start(
  t: TestContext,
  options: SandboxOptions = {},
): Promise<{ sandbox: StripeSandbox; stripe: Stripe }> {
  const sandbox = await startStripeSandbox(options)
  t.after(() => sandbox.close())
  return { sandbox, stripe: connect(sandbox) }
}

/** One for all tests of a suite that only look, or that undo what they do. */
function share(): () => { sandbox: StripeSandbox; stripe: Stripe } {
  let sandbox: StripeSandbox | undefined
  before(async () => {
    sandbox = await startStripeSandbox()
  })
  after(() => sandbox?.close())
  return () => {
    const { address } = sandbox ?? assert.fail()
    return { sandbox: sandbox as StripeSandbox, stripe: connect({ address }) }
  }
}

function connect({ address }: Pick<StripeSandbox, 'address'>, apiKey = key): Stripe {
  const { hostname, port } = new URL(address)
  // Patient: on a busy machine a page takes its time, and none of these waits for the end of it.
  const timeout = 60_000
  return new Stripe(apiKey, {
    host: hostname,
    port,
    protocol: 'http',
    telemetry: false,
    maxNetworkRetries: 0,
    timeout,
  })
}

/** A customer's id, expanded or not. */
const idOf = (value: string | { id: string } | null) => (typeof value === 'string' ? value : value?.id)

/** A deleted customer and an account tell none. */
function balanceOf({ customers }: StripeAccount, customer: StripeInvoice['customer']): unknown {
  const found = customers.get(String(customer))
  return found === undefined || found.deleted ? undefined : found.balance
}

const newestFirst = (a: StripeInvoice, b: StripeInvoice) => b.created - a.created || (a.id < b.id ? 1 : -1)

/** The error that the client throws, whose fields say more than its class. */
async function failure(promise: Promise<unknown>): Promise<Stripe.errors.StripeError> {
  return promise.then(
    () => assert.fail('it did not fail'),
    error => error,
  )
}

/** Asked at once, so that the whole of them lies within the time that a rate is for. */
async function refusalsOf(count: number, ask: () => Promise<unknown>): Promise<string[]> {
  const asked = await Promise.allSettled(Array.from({ length: count }, ask))
  return asked.flatMap(each =>
    each.status === 'rejected' ? `${each.reason.statusCode} ${each.reason.code}` : [],
  )
}

describe('the account of the sandbox’s Stripe', () => {
  it('is the same for one seed at any step size, and different for another seed', () => {
    const [one, two] = [createAccount({ seed: 7 }), createAccount({ seed: 7 })]
    one.advance(5 * 86_400)
    for (let day = 0; day < 5; day++) two.advance(86_400)
    assert.deepEqual([...one.invoices], [...two.invoices])
    assert.deepEqual(one.events, two.events)
    assert.deepEqual([...one.customers], [...two.customers])
    assert.notDeepEqual(
      [...createAccount({ seed: 8 }).invoices.keys()],
      [...createAccount({ seed: 7 }).invoices.keys()],
    )
  })

  it('has the requested number of invoices and customers, even zero', () => {
    for (const count of [0, 1, 500]) {
      const account = createAccount({ invoices: count, customers: 30 })
      assert.equal(account.invoices.size, count)
      assert.equal(account.order.length, count)
      account.advance(86_400)
      assert.ok(account.events.length > 10)
    }
    assert.equal(createAccount({ customers: 1 }).customers.size, 1)
  })

  it('has every case that a connector meets', () => {
    const account = createAccount({ invoices: 400 })
    const all = [...account.invoices.values()]
    const lines = all.flatMap(invoice => invoice.lines.data)
    const among =
      <T>(list: readonly T[]) =>
      (what: string, isOne: (item: T) => boolean | undefined) =>
        assert.ok(list.some(isOne), what)
    const invoice = among(all)
    const line = among(lines)
    for (const currency of ['eur', 'jpy', 'kwd']) invoice(currency, i => i.currency === currency)
    for (const status of ['draft', 'open', 'paid', 'void', 'uncollectible'])
      invoice(status, i => i.status === status)
    for (const type of ['pt_nif', 'eu_vat', 'jp_trn'])
      invoice(type, i => i.customer_tax_ids?.some(id => id.type === type))
    invoice('> 100 lines', i => i.lines.data.length > 100)
    line('a negative proration', l => l.amount < 0)
    line('a decimal quantity', l => l.quantity === null && l.quantity_decimal?.endsWith('.5'))
    line('no pricing', l => l.pricing === null)
    line('a price with decimals', l => l.pricing?.unit_amount_decimal === '1.2345')
    invoice('no customer', i => i.customer === null && i.customer_account?.startsWith('acct_'))
    invoice('a deleted customer', i => account.customers.get(String(i.customer))?.deleted === true)
    invoice('no tax', i => i.total_taxes.length === 0)
    invoice('two rates', i => i.total_taxes.length === 2)
    invoice('inclusive', i => i.total_taxes[0]?.tax_behavior === 'inclusive')
    invoice('a discount', i => i.total_discount_amounts.length === 1)
    invoice('two discounts', i => i.total_discount_amounts.length === 2)
    const hasItemDiscount = (i: StripeInvoice) => i.lines.data.some(l => l.discounts.length > 0)
    invoice('a discount on an item alone', i => hasItemDiscount(i) && i.discounts.length === 0)
    invoice('discounts on an item and on the invoice', i => hasItemDiscount(i) && i.discounts.length > 0)
    line('two discounts on one item', l => l.discounts.length === 2)
    for (const behavior of ['exclusive', 'inclusive'])
      invoice(
        `a discount on an item, ${behavior} tax`,
        i => hasItemDiscount(i) && i.total_taxes[0]?.tax_behavior === behavior,
      )
    invoice('metadata', i => Object.keys(i.metadata).length > 0)
    invoice('an embedded rate', i => i.default_tax_rates.length > 0)
    invoice('a rate to be asked for', i => i.total_taxes.length === 1 && i.default_tax_rates.length === 0)
    invoice('no name', i => i.customer_name === null)
    invoice('no e-mail', i => i.customer_email === null)
    const customer = among([...account.customers.values()].filter(c => !c.deleted))
    customer('a business', c => c.business_name !== undefined)
    customer('no business', c => c.business_name === undefined)
    assert.ok(new Set(all.map(i => i.created)).size < all.length, 'equal seconds')
  })

  it('has invoices that add up, also after changes', () => {
    const account = createAccount({ invoices: 400, seed: 3 })
    account.advance(10 * 86_400)
    const sum = (parts: { amount: number }[]) => parts.reduce((total, { amount }) => total + amount, 0)
    for (const invoice of account.invoices.values()) {
      const { lines, total_taxes: taxes, total, id, status } = invoice
      const discount = sum(invoice.total_discount_amounts)
      const behaving = (behavior: string) => sum(taxes.filter(tax => tax.tax_behavior === behavior))
      const gross = lines.data.reduce((all, line) => all + line.subtotal, 0)
      const ofItems = sum(
        lines.data.flatMap(line =>
          line.discount_amounts.filter(part => line.discounts.includes(part.discount)),
        ),
      )
      // Stripe's subtotal is without the discounts of items already.
      assert.equal(invoice.subtotal, gross - ofItems, id)
      assert.equal(discount, sum(lines.data.flatMap(line => line.discount_amounts)), id)
      assert.equal(sum(taxes), sum(lines.data.flatMap(line => line.taxes)), id)
      assert.equal(total, gross - discount + behaving('exclusive'), id)
      assert.equal(invoice.total_excluding_tax, total - sum(taxes), id)
      for (const tax of taxes) {
        const { percentage } = account.taxRates.get(tax.tax_rate_details.tax_rate) ?? assert.fail()
        // Each line is rounded by itself.
        const drift = Math.abs(tax.amount - (tax.taxable_amount * percentage) / 100)
        assert.ok(drift <= lines.data.length, `${id}: ${drift}`)
      }
      assert.equal(lines.total_count, lines.data.length)
      for (const money of [invoice.subtotal, total, ...lines.data.map(line => line.amount)])
        assert.ok(Number.isSafeInteger(money), id)
      assert.equal(status === 'draft', invoice.number === null, id)
      assert.equal(status === 'draft', invoice.invoice_pdf === null, id)
      assert.equal(status === 'paid', invoice.status_transitions.paid_at !== null && status !== 'void', id)
    }
    const numbers = [...account.invoices.values()]
      .map(({ number }) => number)
      .filter(number => number !== null)
    assert.equal(new Set(numbers).size, numbers.length)
  })

  it('settles invoices like Stripe, with balances, partial payments, credit notes and automatic collection', () => {
    const account = createAccount({ invoices: 600, seed: 5 })
    account.advance(86_400)
    for (const kind of ['pay_part', 'credit'] as const) account.change(kind)
    const all = [...account.invoices.values()]
    const has = (what: string, isOne: (invoice: StripeInvoice) => boolean) => assert.ok(all.some(isOne), what)
    has('an automatic one', i => i.collection_method === 'charge_automatically' && i.due_date === null)
    has('one with a due date', i => i.collection_method === 'send_invoice' && i.due_date !== null)
    has('credit of before', i => i.status === 'open' && i.starting_balance < 0)
    has('debt of before', i => i.status === 'paid' && i.starting_balance > 0 && i.amount_paid > i.total)
    has('one partly paid', i => i.status === 'open' && i.amount_paid > 0 && i.amount_remaining > 0)
    has('one paid in parts', i => i.payments.data.filter(({ status }) => status === 'paid').length === 3)
    has('over ten payments', i => i.payments.data.length > 10)
    has('credited before', i => i.pre_payment_credit_notes_amount > 0 && i.amount_due < i.total)
    has('credited after', i => i.post_payment_credit_notes_amount > 0 && i.status === 'paid')
    has('a negative open one', i => i.status === 'open' && i.total < 0)
    has('uncollectible', i => i.status === 'uncollectible' && i.amount_remaining > 0)
    for (const { id, status, payments, ...invoice } of all) {
      const { amount_due, amount_paid, amount_remaining, total, starting_balance } = invoice
      const due = Math.max(total + starting_balance - invoice.pre_payment_credit_notes_amount, 0)
      assert.equal(amount_due, due, id)
      assert.equal(amount_remaining, status === 'void' ? 0 : amount_due - amount_paid, id)
      const paid = payments.data.reduce((sum, payment) => sum + Number(payment.amount_paid), 0)
      assert.equal(paid, amount_paid, id)
      if (status === 'paid') assert.equal(amount_remaining, 0, id)
      if (status === 'draft') assert.equal(payments.data.length, 0, id)
      const balance = balanceOf(account, invoice.customer)
      if (status === 'draft' && balance !== undefined) assert.equal(starting_balance, balance, id)
    }
  })

  it('has an event for each change over time, and the last event shows the invoice’s state', () => {
    const account = createAccount({ invoices: 100 })
    account.advance(12 * 86_400)
    const last = new Map<unknown, (typeof account.events)[number]>()
    for (const event of account.events)
      if (event.data.object.object === 'invoice') last.set(event.data.object.id, event)
    const types = new Set(account.events.map(({ type }) => type))
    for (const type of [
      'created',
      'updated',
      'finalized',
      'paid',
      'voided',
      'marked_uncollectible',
      'deleted',
    ])
      assert.ok(types.has(`invoice.${type}`), type)
    assert.ok(types.has('customer.updated') && types.has('invoice.upcoming'))
    last.delete(undefined)
    for (const [id, { type, data }] of last) {
      const invoice = account.invoices.get(String(id))
      assert.equal(invoice === undefined, type === 'invoice.deleted')
      if (invoice !== undefined)
        assert.deepEqual([invoice.status, invoice.total], [data.object.status, data.object.total])
    }
    const seconds = account.events.map(({ created }) => created)
    assert.deepEqual(
      seconds,
      seconds.toSorted((a, b) => a - b),
    )
  })

  it('changes on demand, and refuses changes that an invoice does not allow', () => {
    const account = createAccount({ invoices: 0 })
    const id = account.change('create')
    const statuses = [account.invoices.get(id)?.status]
    for (const kind of ['update', 'finalize', 'uncollectible', 'pay'] as const) {
      assert.equal(account.change(kind, id), id)
      statuses.push(account.invoices.get(id)?.status)
    }
    assert.deepEqual(statuses, ['draft', 'draft', 'open', 'uncollectible', 'paid'])
    assert.throws(() => account.change('delete', id), /is paid/)
    assert.throws(() => account.change('pay', 'in_none'), /no invoice/)
    const deleted = account.change('delete')
    assert.equal(account.invoices.has(deleted), false)
    assert.equal(account.events.at(-1)?.type, 'invoice.deleted')
    assert.equal(account.invoices.get(account.change('void'))?.status, 'void')
  })

  it('has drafts that follow a renamed customer, and finalized invoices that do not', () => {
    const account = createAccount({ invoices: 300, customers: 1 })
    const [id = ''] = account.customers.keys()
    const before = [...account.invoices.values()]
    account.renameCustomer(id, 'Nova, S.A.')
    for (const { id, status, customer_name } of before)
      assert.equal(account.invoices.get(id)?.customer_name, status === 'draft' ? 'Nova, S.A.' : customer_name)
    assert.equal(account.events.at(-1)?.type, 'customer.updated')
    assert.throws(() => account.renameCustomer('cus_none', 'x'))
  })
})

describe('the official Stripe client with the sandbox', () => {
  const shared = share()

  it('lists every invoice once, newest first, with its true state', async t => {
    const { sandbox, stripe } = await start(t, { invoices: 330 })
    const listed: Stripe.Invoice[] = []
    for await (const invoice of stripe.invoices.list({ limit: 100 })) listed.push(invoice)
    const truth = [...sandbox.account.invoices.values()].sort(newestFirst)
    assert.deepEqual(
      listed.map(({ id }) => id),
      truth.map(({ id }) => id),
    )
    for (const [index, invoice] of listed.entries()) {
      const { lines, invoice_pdf, hosted_invoice_url, payments: _, ...rest } = truth[index] as StripeInvoice
      const seen = JSON.parse(JSON.stringify(invoice))
      assert.deepEqual(seen.lines.data, lines.data.slice(0, 10))
      assert.equal(seen.lines.has_more, lines.data.length > 10)
      assert.equal(seen.lines.total_count, lines.data.length)
      assert.equal(seen.invoice_pdf, invoice_pdf === null ? null : `${sandbox.address}${invoice_pdf}`)
      delete seen.lines
      delete seen.invoice_pdf
      delete seen.hosted_invoice_url
      assert.deepEqual(seen, rest)
    }
    assert.equal(sandbox.requests.get('list_invoices'), 4)
  })

  it('filters by status, customer and time, and reads backwards', async () => {
    const { sandbox, stripe } = shared()
    const truth = [...sandbox.account.invoices.values()].sort(newestFirst)
    const middle = truth[100] as StripeInvoice
    const owner = truth.find(({ customer }) => customer !== null)?.customer
    const filters: [Stripe.InvoiceListParams, (invoice: StripeInvoice) => boolean][] = [
      [{ status: 'draft' }, ({ status }) => status === 'draft'],
      [{ customer: String(owner) }, ({ customer }) => customer === owner],
      [{ created: { gt: middle.created } }, ({ created }) => created > middle.created],
      [{ created: { lte: middle.created } }, ({ created }) => created <= middle.created],
      [
        { created: { gte: middle.created - 9e6, lt: middle.created } },
        ({ created }) => created >= middle.created - 9e6 && created < middle.created,
      ],
      [{ created: middle.created }, ({ created }) => created === middle.created],
    ]
    for (const [params, holds] of filters) {
      const found = await stripe.invoices.list({ limit: 100, ...params }).autoPagingToArray({ limit: 1_000 })
      assert.ok(found.length > 0)
      assert.deepEqual(
        found.map(({ id }) => id),
        truth.filter(holds).map(({ id }) => id),
        JSON.stringify(params),
      )
    }
    const back = await stripe.invoices.list({ limit: 5, ending_before: middle.id })
    assert.deepEqual(
      back.data.map(({ id }) => id),
      truth.slice(95, 100).map(({ id }) => id),
    )
    assert.equal(back.has_more, true)
    const usual = await stripe.invoices.list()
    assert.deepEqual([usual.data.length, usual.url, usual.object], [10, '/v1/invoices', 'list'])
  })

  it('reads ten expanded payments of an invoice, and all payments as a list', async t => {
    const { sandbox, stripe } = await start(t, { invoices: 300 })
    const { account } = sandbox
    const many = [...account.invoices.values()].find(({ payments }) => payments.data.length > 10)
    const { id, payments } = many ?? assert.fail('no invoice has over ten payments')
    assert.equal((await stripe.invoices.retrieve(id)).payments, undefined)
    const expanded = (await stripe.invoices.retrieve(id, { expand: ['payments'] })).payments
    assert.deepEqual(JSON.parse(JSON.stringify(expanded?.data)), payments.data.slice(0, 10))
    assert.equal(expanded?.has_more, true)
    const all = await stripe.invoicePayments.list({ invoice: id, limit: 5 }).autoPagingToArray({ limit: 100 })
    assert.deepEqual(JSON.parse(JSON.stringify(all)), payments.data)
    const { data } = await stripe.invoices.list({ limit: 100, expand: ['data.payments', 'data.customer'] })
    assert.ok(data.every(invoice => invoice.payments !== undefined))
    assert.ok(data.some(({ customer }) => typeof customer === 'object' && customer !== null))
    assert.equal(
      (await failure(stripe.invoicePayments.list({ invoice: 'in_none' }))).code,
      'resource_missing',
    )
    for (const { data } of account.events) assert.equal('payments' in data.object, false)
    sandbox.forbidden.add('invoice_payments')
    for (const refused of [
      stripe.invoices.retrieve(id, { expand: ['payments'] }),
      stripe.invoicePayments.list({ invoice: id }),
    ])
      assert.equal((await failure(refused)).statusCode, 403)
  })

  it('expands customers, deleted ones too, and reads an invoice without customer', async () => {
    const { sandbox, stripe } = shared()
    const { account } = sandbox
    const listed = stripe.invoices.list({ limit: 100, expand: ['data.customer'] })
    const seen = new Set<string>()
    for (const { id, customer, customer_account } of await listed.autoPagingToArray({ limit: 1_000 })) {
      const truth = account.invoices.get(id)?.customer ?? null
      assert.equal(idOf(customer) ?? null, truth)
      if (truth !== null)
        assert.deepEqual(JSON.parse(JSON.stringify(customer)), account.customers.get(String(truth)))
      else assert.match(customer_account ?? '', /^acct_/)
      seen.add(
        customer === null ? 'none' : (customer as { deleted?: boolean }).deleted ? 'deleted' : 'living',
      )
    }
    assert.deepEqual([...seen].sort(), ['deleted', 'living', 'none'])
    const [owned = assert.fail()] = [...account.invoices.values()].filter(({ customer }) => customer !== null)
    const one = await stripe.invoices.retrieve(owned.id, { expand: ['customer'] })
    assert.equal(typeof one.customer, 'object')
    assert.equal(typeof (await stripe.invoices.retrieve(owned.id)).customer, 'string')
  })

  it('reads all lines in order', async () => {
    const { sandbox, stripe } = shared()
    const long = [...sandbox.account.invoices.values()].find(({ lines }) => lines.data.length > 100)
    const { id, lines } = long ?? assert.fail()
    const read = await stripe.invoices.listLineItems(id, { limit: 100 }).autoPagingToArray({ limit: 1_000 })
    assert.deepEqual(JSON.parse(JSON.stringify(read)), lines.data)
    const { lines: embedded } = await stripe.invoices.retrieve(id)
    assert.deepEqual([embedded.data.length, embedded.has_more], [10, true])
  })

  it('lists events of the last 30 days by type, newest first', async t => {
    const { sandbox, stripe } = await start(t)
    const { account } = sandbox
    // The 30 days end within the first two.
    account.advance(2 * 86_400)
    account.clock += 27 * 86_400
    account.advance(2 * 86_400)
    const recent = account.events.filter(({ created }) => created >= account.clock - 30 * 86_400).reverse()
    const old = account.events[0]?.id ?? ''
    assert.ok(recent.length > 300 && account.events.length > recent.length + 50)
    const ids = async (params: Stripe.EventListParams) =>
      (await stripe.events.list({ limit: 100, ...params }).autoPagingToArray({ limit: 10_000 })).map(
        ({ id }) => id,
      )
    const expected = (holds: (type: string) => boolean) =>
      recent.filter(({ type }) => holds(type)).map(({ id }) => id)
    assert.deepEqual(
      await ids({}),
      expected(() => true),
    )
    assert.deepEqual(
      await ids({ type: 'invoice.*' }),
      expected(type => type.startsWith('invoice.')),
    )
    assert.deepEqual(
      await ids({ type: 'invoice.paid' }),
      expected(type => type === 'invoice.paid'),
    )
    const types = ['invoice.deleted', 'customer.updated']
    assert.deepEqual(
      await ids({ types }),
      expected(type => types.includes(type)),
    )
    const { id, created } = recent[50] ?? assert.fail()
    assert.deepEqual(
      await ids({ created: { gt: created } }),
      recent.filter(e => e.created > created).map(e => e.id),
    )
    assert.equal((await stripe.events.retrieve(id)).created, created)
    assert.equal((await failure(stripe.events.retrieve(old))).statusCode, 404)
    assert.equal((await failure(stripe.events.list({ starting_after: old }))).code, 'resource_missing')
  })

  it('reads customers, tax rates and the account', async () => {
    const { sandbox, stripe } = shared()
    const { customers, taxRates } = sandbox.account
    const living = [...customers.values()].filter(({ deleted }) => !deleted)
    const listed = await stripe.customers.list({ limit: 5 }).autoPagingToArray({ limit: 100 })
    assert.deepEqual(listed.map(({ id }) => id).sort(), living.map(({ id }) => id).sort())
    for (const [id, customer] of customers)
      assert.deepEqual(JSON.parse(JSON.stringify(await stripe.customers.retrieve(id))), customer)
    for (const [id, { percentage }] of taxRates)
      assert.equal((await stripe.taxRates.retrieve(id)).percentage, percentage)
    assert.match((await stripe.accounts.retrieveCurrent()).id, /^acct_/)
  })

  it('receives errors in Stripe’s form', async () => {
    const { sandbox, stripe } = shared()
    const draft = sandbox.account.change('create')
    sandbox.account.change('delete', draft)
    const unknown = { updated: 1 } as Stripe.InvoiceListParams
    const failures: [Promise<unknown>, number, string | undefined, string | undefined][] = [
      [stripe.invoices.retrieve('in_none'), 404, 'resource_missing', 'invoice'],
      [stripe.invoices.retrieve(draft), 404, 'resource_missing', 'invoice'],
      [stripe.invoices.listLineItems('in_none'), 404, 'resource_missing', 'invoice'],
      [stripe.customers.retrieve('cus_none'), 404, 'resource_missing', 'id'],
      [stripe.taxRates.retrieve('txr_none'), 404, 'resource_missing', 'id'],
      [stripe.invoices.list(unknown), 400, 'parameter_unknown', 'updated'],
      [
        stripe.invoices.list({ created: { since: 1 } as Stripe.RangeQueryParam }),
        400,
        'parameter_unknown',
        'created[since]',
      ],
      [stripe.invoices.list({ starting_after: draft }), 400, 'resource_missing', 'starting_after'],
      [stripe.invoices.list({ customer: 'cus_none' }), 400, 'resource_missing', 'customer'],
      [stripe.invoices.list({ limit: 101 }), 400, undefined, 'limit'],
      [stripe.invoices.list({ limit: 0 }), 400, undefined, 'limit'],
      [stripe.invoices.list({ status: 'settled' }), 400, undefined, 'status'],
      [stripe.invoices.list({ expand: ['data.nothing'] }), 400, undefined, 'expand'],
      [stripe.charges.list(), 404, undefined, undefined],
      [stripe.invoices.create({}), 404, undefined, undefined],
    ]
    for (const [promise, status, code, param] of failures) {
      const error = await failure(promise)
      assert.deepEqual([error.statusCode, error.code, error.param], [status, code, param], error.message)
      assert.equal(error.rawType, 'invalid_request_error')
      assert.match(error.requestId ?? '', /^req_/)
    }
  })

  it('is refused on every route for parameters that Stripe does not document', async () => {
    const { sandbox, stripe } = shared()
    const { account, address } = sandbox
    account.advance(86_400)
    const [invoice, customer, rate] = [account.invoices, account.customers, account.taxRates].map(
      objects => [...objects.keys()][0] ?? '',
    )
    const lists = [
      'invoices',
      `invoices/${invoice}/lines`,
      'events',
      'customers',
      'tax_rates',
      'webhook_endpoints',
    ]
    const single = [
      `invoices/${invoice}`,
      `events/${account.events.at(-1)?.id}`,
      `customers/${customer}`,
      `tax_rates/${rate}`,
      'account',
    ]
    const headers = { authorization: `Bearer ${key}` }
    const ask = async (path: string, method = 'GET') => {
      const answer = await fetch(`${address}/v1/${path}`, { headers, method })
      const { error } = (await answer.json()) as { error?: { code?: string; param?: string; type: string } }
      assert.equal(error?.type, answer.status === 200 ? undefined : 'invalid_request_error')
      return [answer.status, error?.code, error?.param]
    }
    for (const path of [...lists, ...single]) {
      assert.deepEqual(await ask(path), [200, undefined, undefined], path)
      assert.deepEqual(await ask(`${path}?page=2`), [400, 'parameter_unknown', 'page'], path)
      assert.deepEqual(await ask(`${path}?expand[]=data.nothing`), [400, undefined, 'expand'], path)
      assert.deepEqual(await ask(path, 'PUT'), [404, undefined, undefined], path)
      assert.deepEqual(await ask(`${path}/more/of/it`), [404, undefined, undefined], path)
    }
    for (const path of lists) {
      for (const limit of ['0', '101', '-1'])
        assert.deepEqual(await ask(`${path}?limit=${limit}`), [400, undefined, 'limit'], path)
      for (const limit of ['x', '1.5'])
        assert.deepEqual(
          await ask(`${path}?limit=${limit}`),
          [400, 'parameter_invalid_integer', 'limit'],
          path,
        )
      assert.deepEqual(await ask(`${path}?limit=`), [400, 'parameter_invalid_empty', 'limit'], path)
      for (const cursor of ['starting_after', 'ending_before'])
        assert.deepEqual(await ask(`${path}?${cursor}=none`), [400, 'resource_missing', cursor], path)
      const both = await ask(`${path}?starting_after=a&ending_before=b`)
      assert.deepEqual(both, [400, undefined, 'starting_after'], path)
    }
    for (const path of ['invoices', 'events', 'customers']) {
      assert.equal((await ask(`${path}?created[gte]=0`))[0], 200)
      for (const created of ['created=-1', 'created[gt]=-5', 'created=1&created[gt]=1', 'created[gt]=1e9'])
        assert.equal((await ask(`${path}?${created}`))[0], 400, created)
    }
    for (const status of ['settled', 'OPEN']) assert.equal((await ask(`invoices?status=${status}`))[0], 400)
    assert.deepEqual(await ask('invoices?customer='), [400, 'parameter_invalid_empty', 'customer'])

    const many = Array.from({ length: 21 }, (_, index) => `invoice.kind_${index}`)
    await stripe.events.list({ types: many.slice(1) })
    for (const types of [many, ['invoice.*'], ['*'], ['invoice.paid', 'customer.tax_id.*'], ['paid']])
      assert.equal((await failure(stripe.events.list({ types }))).param, 'types', types.join())
    for (const type of ['invoice*', 'invoice.*.paid', 'invoice.', 'Invoice.paid'])
      assert.equal((await failure(stripe.events.list({ type }))).param, 'type', type)
    const twice = stripe.events.list({ type: 'invoice.paid', types: ['invoice.paid'] })
    assert.equal((await failure(twice)).statusCode, 400)
  })

  it('reads the account’s name if permitted, and the key’s mode on every object', async t => {
    const { sandbox, stripe } = await start(t, { accountId: 'acct_1Other' })
    assert.equal((await stripe.accounts.retrieveCurrent()).id, 'acct_1Other')
    sandbox.forbidden.add('account')
    const error = await failure(connect(sandbox, 'rk_test_sandbox').accounts.retrieveCurrent())
    assert.deepEqual([error.statusCode, error.type], [403, 'StripePermissionError'])

    sandbox.account.advance(86_400)
    for (const apiKey of sandboxKeys) {
      const client = connect(sandbox, apiKey)
      const [invoices, events, customers, rates] = await Promise.all([
        client.invoices.list({ expand: ['data.customer'] }),
        client.events.list(),
        client.customers.list(),
        client.taxRates.list(),
      ])
      const told = JSON.stringify([invoices, events, customers, rates]).match(/"livemode":(true|false)/g)
      assert.ok(Number(told?.length) > 100)
      assert.deepEqual(new Set(told), new Set([`"livemode":${apiKey.includes('live')}`]), apiKey)
      const { livemode, lines } = await client.invoices.retrieve(invoices.data[0]?.id ?? '')
      assert.deepEqual(
        [livemode, lines.data[0]?.livemode],
        [apiKey.includes('live'), apiKey.includes('live')],
      )
    }
  })

  it('needs a key, and is limited to the rate', async t => {
    const { sandbox } = await start(t, { apiKey: 'sk_test_right', ratePerSecond: 3 })
    stopClock(t)
    assert.equal((await failure(connect(sandbox, 'sk_test_wrong').invoices.list())).statusCode, 401)
    const bare = await fetch(`${sandbox.address}/v1/invoices`)
    assert.equal(bare.status, 401)
    const stripe = connect(sandbox, 'sk_test_right')
    assert.deepEqual(await refusalsOf(4, () => stripe.invoices.list()), ['429 rate_limit'])
    const any = shared()
    assert.equal((await failure(connect(any.sandbox, 'pk_test_public').invoices.list())).statusCode, 401)
    for (const key of ['sk_', 'sk_test_', 'sk_prod_x', 'test', 'sk_test_wrong', 'rk_live_sandbox2']) {
      const { statusCode, type, message } = await failure(connect(any.sandbox, key).invoices.list())
      assert.deepEqual([statusCode, type], [401, 'StripeAuthenticationError'], key)
      assert.match(message, /^Invalid API Key provided: /)
    }
    const version = '2026-10-28.endive'
    const headers = { authorization: `Basic ${btoa('rk_live_sandbox:')}`, 'stripe-version': version }
    const url = `${any.sandbox.address}/v1/invoices?expand[]=data.customer`
    const answer = await fetch(url, { headers })
    assert.deepEqual([answer.status, answer.headers.get('stripe-version')], [200, version])
    const older = await fetch(url, { headers: { ...headers, 'stripe-version': '2020-08-27' } })
    assert.equal(older.status, 400)
    assert.match(await older.text(), /Invalid Stripe API version: 2020-08-27/)
  })

  it('is limited to a separate rate for each endpoint', async t => {
    const { stripe } = await start(t, { ratePerEndpoint: 2, lines: 12 })
    stopClock(t)
    const { data } = await stripe.invoices.list({ limit: 1 })
    assert.deepEqual(await refusalsOf(3, () => stripe.customers.list()), ['429 rate_limit'])
    const lines = await stripe.invoices.listLineItems(data[0]?.id ?? '', { limit: 100 })
    assert.equal(lines.data.length, 12)
    await stripe.events.list()
  })

  it('waits as long as the sandbox is told to delay', async t => {
    const { sandbox, stripe } = await start(t, { latencyMs: 60, invoices: 1 })
    const clock = stopClock(t)
    let isAnswered = false
    const answer = stripe.invoices.list().then(() => {
      isAnswered = true
    })
    await until(() => sandbox.requests.get('list_invoices') === 1)
    await clock.pass(59)
    assert.equal(isAnswered, false)
    await clock.pass(1)
    await answer
  })
})

describe('the webhooks of the sandbox’s Stripe', () => {
  const secret = 'whsec_sandbox'
  const { webhooks } = new Stripe(key)

  /** Checks every delivery as the connector would, and answers with what is asked of it. */
  async function receive(t: TestContext, statusFor: (id: string) => number = () => 200) {
    const received: string[] = []
    const server = createServer(async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      const header = request.headers['stripe-signature'] ?? ''
      const event = webhooks.constructEvent(Buffer.concat(chunks), header, secret)
      received.push(event.id)
      response.writeHead(statusFor(event.id)).end()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks` }
  }

  it('are signed, and arrive once and in order', async t => {
    const { sandbox } = await start(t)
    const { received, url } = await receive(t)
    await assert.rejects(sandbox.deliver(), /subscribed/)
    sandbox.subscribe(url, secret)
    sandbox.account.advance(43_200)
    const deliveries = await sandbox.deliver()
    assert.ok(deliveries.length > 0 && deliveries.every(({ status }) => status === 200))
    assert.deepEqual(
      received,
      sandbox.account.events.map(({ id }) => id),
    )
    assert.deepEqual(await sandbox.deliver(), [])
    sandbox.account.change('create')
    assert.equal((await sandbox.deliver()).length, 1)
    assert.equal((await sandbox.deliver({ since: 0 })).length, sandbox.account.events.length)
  })

  it('arrive shuffled, twice or never on request', async t => {
    const { sandbox } = await start(t)
    const { received, url } = await receive(t)
    sandbox.subscribe(url, secret)
    sandbox.account.advance(43_200)
    const ids = sandbox.account.events.map(({ id }) => id)
    await sandbox.deliver({ order: 'shuffled' })
    assert.notDeepEqual(received, ids)
    assert.deepEqual(received.splice(0).sort(), ids.toSorted())
    await sandbox.deliver({ since: 0, duplicate: 1 })
    assert.equal(received.splice(0).length, ids.length * 2)
    await sandbox.deliver({ since: 0, duplicate: 0.3 })
    const some = received.splice(0).length
    assert.ok(some > ids.length && some < ids.length * 2)
    await sandbox.deliver({ since: 0, drop: 0.5 })
    const left = received.splice(0).length
    assert.ok(left > 0 && left < ids.length)
    assert.deepEqual(await sandbox.deliver({ since: 0, drop: 1 }), [])
  })

  it('are repeated after a refusal or without a receiver', async t => {
    const { sandbox } = await start(t)
    let isUp = false
    const { url } = await receive(t, () => (isUp ? 200 : 503))
    sandbox.account.change('create')
    sandbox.subscribe('http://127.0.0.1:1/', secret)
    assert.deepEqual(
      (await sandbox.deliver()).map(({ status }) => status),
      [0],
    )
    sandbox.subscribe(url, secret)
    assert.deepEqual(
      (await sandbox.deliver()).map(({ status }) => status),
      [503],
    )
    isUp = true
    assert.deepEqual(
      (await sandbox.deliver()).map(({ status }) => status),
      [200],
    )
    assert.deepEqual(await sandbox.deliver(), [])
  })
})

describe('faults of the sandbox’s Stripe', () => {
  const shared = share()
  const headers = { authorization: `Bearer ${key}` }
  const ask = (url: string) =>
    fetch(url, { headers, redirect: 'manual', signal: AbortSignal.timeout(60_000) })

  /** What each does to a list of invoices. */
  const effects: Record<
    Fault,
    (ask: () => Promise<Response>, sandbox: StripeSandbox, t: TestContext) => Promise<unknown>
  > = {
    ...faultEffects,
    async too_many(ask) {
      const answer = await ask()
      assert.deepEqual([answer.status, answer.headers.get('retry-after')], [429, 'soon'])
    },
    huge: async (_, sandbox) =>
      assert.ok((await countBytes(`${sandbox.address}/v1/invoices`, headers)) > 50_000_000),
    async wrong_type(ask) {
      const first = (await (await ask()).json()) as { data: object }
      assert.equal(Array.isArray(first.data), false)
      const second = (await (await ask()).json()) as { data: { total: unknown }[] }
      assert.equal(typeof second.data[0]?.total, 'string')
    },
    async missing_id(ask) {
      const { data } = (await (await ask()).json()) as { data: { id?: string; object: string }[] }
      assert.deepEqual([data.length, data[0]?.id, data[0]?.object], [10, undefined, 'invoice'])
    },
    async looping_page(ask) {
      const page = (await (await ask()).json()) as { has_more: boolean; data: { id: string }[] }
      assert.deepEqual(await (await ask()).json(), page)
      assert.equal(page.has_more, true)
    },
    async gateway_404(ask) {
      const answer = await ask()
      assert.deepEqual([answer.status, answer.headers.get('content-type')], [404, 'text/html'])
    },
  }
  for (const fault of faultNames)
    it(`include ${fault}, which has its described effect and ends when it is cleared`, async t => {
      const { sandbox, stripe } = shared()
      const [id] = [...sandbox.account.invoices.values()].sort(newestFirst).map(invoice => invoice.id)
      sandbox.faults.set('list_invoices', fault, { retryAfter: 'soon' })
      const timeout = fault === 'hang' ? 400 : 60_000
      const url = `${sandbox.address}/v1/invoices?starting_after=${id}`
      const options: RequestInit = { headers, redirect: 'manual' }
      await effects[fault](() => fetch(url, { ...options, signal: AbortSignal.timeout(timeout) }), sandbox, t)
      await stripe.events.list()
      sandbox.faults.clear()
      assert.equal((await stripe.invoices.list()).data.length, 10)
    })

  it('apply to any route for a given number of times, and a route’s own fault comes first', async () => {
    const { sandbox } = shared()
    const { account, address, faults } = sandbox
    sandbox.requests.clear()
    account.change('pay')
    const paid = [...account.invoices.values()].find(({ status }) => status === 'paid') ?? assert.fail()
    const [customer] = account.customers.keys()
    const [rate] = account.taxRates.keys()
    const paths: Record<RouteName, string> = {
      list_invoices: '/v1/invoices',
      retrieve_invoice: `/v1/invoices/${paid.id}`,
      list_lines: `/v1/invoices/${paid.id}/lines`,
      list_events: '/v1/events',
      retrieve_customer: `/v1/customers/${customer}`,
      retrieve_tax_rate: `/v1/tax_rates/${rate}`,
      retrieve_account: '/v1/account',
      pdf: paid.invoice_pdf ?? '',
    }
    for (const [route, path] of Object.entries(paths) as [RouteName, string][]) {
      faults.set(route, 'error_500', { times: 2 })
      faults.set('*', 'error_503', { times: 1 })
      const statuses: number[] = []
      for (let turn = 0; turn < 4; turn++) statuses.push((await ask(address + path)).status)
      assert.deepEqual(statuses, [500, 500, 503, 200], route)
      assert.equal(sandbox.requests.get(route), 4)
    }
    faults.set('retrieve_invoice', 'missing_id')
    const invoice = (await (await ask(address + paths.retrieve_invoice)).json()) as Record<string, unknown>
    assert.deepEqual([invoice.id, invoice.object], [undefined, 'invoice'])
    faults.set('retrieve_invoice', 'wrong_type')
    const wrong = (await (await ask(address + paths.retrieve_invoice)).json()) as Record<string, unknown>
    assert.deepEqual([typeof wrong.total, Array.isArray(wrong.total_taxes)], ['string', false])
    for (const fault of ['garbled', 'wrong_type', 'missing_id'] as const) {
      faults.set('pdf', fault)
      assert.doesNotMatch(await (await ask(address + paths.pdf)).text(), /^%PDF-/)
    }
  })
})

describe('the PDF of an invoice in the sandbox', () => {
  const shared = share()

  it('shows the number and the total, and needs the secret in its address but no key', async () => {
    const { sandbox, stripe } = shared()
    const { invoices } = sandbox.account
    const finalized = await stripe.invoices.list({ status: 'paid', limit: 100 })
    for (const { id, invoice_pdf, number, total, currency } of finalized.data) {
      const answer = await fetch(invoice_pdf ?? '')
      const bytes = Buffer.from(await answer.arrayBuffer())
      const text = bytes.toString('latin1')
      assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, 'application/pdf'])
      assert.match(text, /^%PDF-1\.4\n/)
      assert.ok(text.includes(`Fatura ${number}`) && text.includes(formatAmount(total, currency)), id)
      const start = Number(/startxref\n(\d+)\n%%EOF\n$/.exec(text)?.[1])
      assert.ok(text.startsWith('xref\n', start))
      const offsets = [...text.slice(start).matchAll(/^(\d{10}) 00000 n $/gm)].map(([, offset]) =>
        Number(offset),
      )
      for (const [index, offset] of offsets.entries())
        assert.ok(text.startsWith(`${index + 1} 0 obj`, offset))
      const [, length = '', stream = ''] = /\/Length (\d+) >>\nstream\n(.*)\nendstream/s.exec(text) ?? []
      assert.equal(stream.length, Number(length))
    }
    const { id } = finalized.data[0] ?? assert.fail()
    assert.equal((await fetch(`${sandbox.address}/pdf/${id}/guessed.pdf`)).status, 404)
    const draft = [...invoices.values()].find(({ status }) => status === 'draft')
    assert.equal(draft?.invoice_pdf, null)
  })

  it('opens in a PDF reader', { skip: !hasPdftotext() && 'pdftotext is not on this machine' }, async () => {
    const { sandbox, stripe } = shared()
    sandbox.account.change('pay')
    const [invoice = assert.fail()] = (await stripe.invoices.list({ status: 'paid', limit: 1 })).data
    const input = Buffer.from(await (await fetch(invoice.invoice_pdf ?? '')).arrayBuffer())
    const text = execFileSync('pdftotext', ['-', '-'], { input, encoding: 'utf8' })
    assert.match(text, new RegExp(`Fatura ${invoice.number}`))
    assert.ok(text.includes(formatAmount(invoice.total, invoice.currency)))
    assert.match(text, /Documento de demonstração/)
  })
})

function hasPdftotext(): boolean {
  try {
    execFileSync('pdftotext', ['-v'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

describe('fatura sandbox with Stripe alone', () => {
  it('serves, explains its use, obeys its controls and stops at a signal', async t => {
    const cli = await createCli(t)
    const program = cli.start([
      'sandbox',
      '--port',
      '0',
      '--seed',
      '5',
      '--invoices',
      '30',
      '--customers',
      '4',
    ])
    const [, address = ''] = await program.waitFor(/STRIPE_API_BASE=(\S+) STRIPE_API_KEY=sk_test_sandbox\n/)
    await program.waitFor(/Ctrl-C/)
    const stripe = connect({ address })
    const list = await stripe.invoices.list({ limit: 100 })
    const truth = createAccount({ seed: 5, invoices: 30, customers: 4 })
    assert.deepEqual(list.data.map(({ id }) => id).sort(), [...truth.invoices.keys()].sort())
    const post = async (path: string) => {
      const answer = await fetch(`${address}/_sandbox/${path}`, { method: 'POST' })
      return { status: answer.status, json: (await answer.json()) as Record<string, number> }
    }
    truth.advance(172_800)
    const advanced = await post('advance?seconds=172800')
    assert.deepEqual(advanced.json, { clock: truth.clock, events: truth.events.length })
    assert.equal((await stripe.events.list()).data[0]?.id, truth.events.at(-1)?.id)
    await post('faults?route=list_invoices&fault=too_many&times=1&retry_after=7')
    assert.equal((await failure(stripe.invoices.list())).headers?.['retry-after'], '7')
    await post('faults?route=*&fault=error_500')
    assert.equal((await failure(stripe.invoices.list())).statusCode, 500)
    await post('clear')
    await stripe.invoices.list()
    assert.equal((await post('deliver')).status, 400)
    assert.equal((await post('subscribe?url=http://127.0.0.1:1/&secret=whsec_x')).status, 200)
    assert.deepEqual((await post('deliver')).json, { sent: truth.events.length, acknowledged: 0 })
    for (const wrong of [
      'nothing',
      'faults?route=x&fault=hang',
      'faults?route=*&fault=x',
      'advance?seconds=x',
      'subscribe?url=x',
    ])
      assert.ok([400, 404].includes((await post(wrong)).status), wrong)
    await post('faults?route=*&fault=hang')
    const hanging = failure(stripe.invoices.list())
    const { code, stderr } = await program.stop('SIGTERM')
    assert.deepEqual([code, stderr], [0, ''])
    await hanging
    assert.ok(await isRefused(Number(new URL(address).port)))
  })

  it('reports invalid arguments in one line', async t => {
    const cli = await createCli(t)
    assertOneLine(await cli.run(['sandbox', '--port=70000']), /--port must be/)
    for (const option of [
      'seed=x',
      'invoices=-1',
      'customers=0',
      'differences=x',
      'invoicexpress-port=70000',
    ])
      await assert.rejects(
        sandboxCommand().parseAsync(['--port=0', `--${option}`], { from: 'user' }),
        error => error instanceof CliError && error.message.startsWith(`--${option.split('=')[0]} must be`),
        option,
      )
    const { sandbox } = await start(t, { invoices: 1 })
    const { port } = new URL(sandbox.address)
    assertOneLine(await cli.run(['sandbox', '--port', port]), /--port/)
  })
})
