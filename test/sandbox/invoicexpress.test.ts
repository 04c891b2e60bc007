/** The local InvoiceXpress, asked over HTTP. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { after, before, describe, it, type TestContext } from 'node:test'
import {
  type DocumentFault,
  type DocumentRouteName,
  documentFaultNames,
  documentRouteNames,
  routeNames,
} from '../../sandbox/faults.ts'
import {
  createDocuments,
  type DocumentOptions,
  documentChangeKinds,
} from '../../sandbox/invoicexpress/account.ts'
import { ixControls } from '../../sandbox/invoicexpress/control.ts'
import {
  type DifferenceKind,
  differenceKinds,
  type Planted,
} from '../../sandbox/invoicexpress/differences.ts'
import { chargedBy, type IxDocument, ixTypes, toEuros, toMajor } from '../../sandbox/invoicexpress/objects.ts'
import {
  type InvoiceXpressOptions,
  type InvoiceXpressSandbox,
  startInvoiceXpressSandbox,
} from '../../sandbox/invoicexpress/server.ts'
import { stateKinds } from '../../sandbox/invoicexpress/states.ts'
import { createAccount } from '../../sandbox/stripe/account.ts'
import { stripeControls } from '../../sandbox/stripe/control.ts'
import type { StripeInvoice } from '../../sandbox/stripe/objects.ts'
import { permissions } from '../../sandbox/stripe/routes.ts'
import { startStripeSandbox } from '../../sandbox/stripe/server.ts'
import { dayIn } from '../../src/domain/calendar.ts'
import { documentTypes } from '../../src/domain/document.ts'
import { assertOneLine, createCli, isRefused } from '../support/clients/cli.ts'
import { countBytes, faultEffects } from '../support/upstreams/faulty-body.ts'

const key = 'ix_test_sandbox'

/** A Stripe account, its documents, and the server. */
async function start(
  t: { after: (end: () => unknown) => void },
  {
    invoices = 200,
    ...options
  }: DocumentOptions & Partial<InvoiceXpressOptions> & { invoices?: number } = {},
) {
  const account = createAccount({ invoices })
  const documents = createDocuments(account, options)
  const sandbox = await startInvoiceXpressSandbox({ apiKey: key, ...options, documents })
  t.after(() => sandbox.close())
  return { account, documents, sandbox }
}

type Started = Awaited<ReturnType<typeof start>>

/** One for all tests of a suite that only look, or that undo what they do. */
function share(): () => Started {
  let started: Started | undefined
  const endings: (() => unknown)[] = []
  before(async () => {
    started = await start({ after: end => endings.push(end as () => unknown) })
  })
  after(async () => {
    for (const end of endings) await end()
  })
  return () => started ?? assert.fail()
}

/** The clock that the sandbox waits by; it is put forward by so many milliseconds. */
function takeClock(t: TestContext): (ms: number) => void {
  const { now } = performance
  let ahead = 0
  t.mock.method(performance, 'now', () => now.call(performance) + ahead)
  return ms => {
    ahead += ms
  }
}

const lisbonDayOf = dayIn('Europe/Lisbon')

interface Asked {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: a test states what it expects of it
  json: any
}

async function ask({ address }: { address: string }, path: string, apiKey = key): Promise<Asked> {
  const url = new URL(path, address)
  if (!url.searchParams.has('api_key')) url.searchParams.set('api_key', apiKey)
  const answer = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(60_000) })
  return { status: answer.status, headers: answer.headers, json: await answer.json() }
}

async function post({ address }: { address: string }, path: string): Promise<Asked> {
  const answer = await fetch(`${address}/_sandbox/${path}`, { method: 'POST' })
  return { status: answer.status, headers: answer.headers, json: await answer.json() }
}

/** As the account has it, whichever way it was written; without what only some answers have. */
function plainly<T extends Pick<IxDocument, 'archived' | 'total' | 'client' | 'sequence_number' | 'items'>>(
  document: T,
): T {
  const { archived, total, client, sequence_number, items } = document
  const rest: Record<string, unknown> = { ...document }
  for (const name of ['inverted_sequence_number', 'atcud', 'sequence_id', 'permalink', 'saft_hash'])
    delete rest[name]
  for (const name of ['tax_exemption', 'multicurrency', 'mb_reference']) delete rest[name]
  return {
    ...(rest as T),
    archived: Boolean(archived),
    total: Number(total),
    sequence_number: /\d/.test(sequence_number ?? '') ? sequence_number : null,
    client: { id: Number(client.id), name: client.name, country: client.country },
    items: items.map(item => ({ ...item, tax: { ...item.tax, value: Number(item.tax.value) } })),
  }
}

const plainList = (documents: readonly IxDocument[]) => documents.map(plainly)

/** Every page of a list, of what was not put away. */
async function listAll(sandbox: { address: string }, filter = ''): Promise<IxDocument[]> {
  const all: IxDocument[] = []
  for (let page = 1; ; page++) {
    const { status, json } = await ask(sandbox, `/invoices.json?per_page=50&page=${page}&${filter}`)
    assert.equal(status, 200)
    all.push(...plainList(json.invoices))
    if (page >= json.pagination.total_pages) return all
  }
}

const pathOf = ({ type, id }: IxDocument) => `/${ixTypes[type].path}/${id}.json`
const newestFirst = (documents: Iterable<IxDocument>) => [...documents].sort((a, b) => b.id - a.id)
const idsOf = (documents: { id: number }[]) => documents.map(({ id }) => id)

const fitting = { open: 'final', paid: 'settled', void: 'canceled', uncollectible: 'final', draft: '' }

const isNote = ({ type }: Pick<IxDocument, 'type'>) => type.endsWith('CreditNote')

/** No document certifies it. */
const isNegative = ({ total, total_excluding_tax }: StripeInvoice) =>
  total < 0 || (total_excluding_tax ?? 0) < 0 || total < (total_excluding_tax ?? total)

/** Which difference an invoice of an otherwise ordinary account shows, found by looking at nothing but the two. */
function differenceOf(
  invoice: StripeInvoice,
  { documents, clients, relatedTo }: ReturnType<typeof createDocuments>,
): DifferenceKind | null {
  const { metadata, status, total, currency } = invoice
  const document = [...documents.values()].find(({ reference }) => reference === invoice.id)
  if (document === undefined) {
    if (metadata.ix_state === 'creating') return 'stuck_creating'
    if (metadata.ix_state === 'failed') return 'failed'
    if (status === 'draft' || isNegative(invoice)) return null
    return status === 'open' ? 'open_without_document' : 'paid_without_document'
  }
  const all = [...documents.values()].filter(({ reference }) => reference === invoice.id)
  if (all.length > 1) return 'several_documents'
  if (status === 'void' && document.status !== 'canceled') return 'live_document_of_void'
  if (status === 'paid' && document.status === 'final') return 'paid_not_settled'
  if (status === 'open' && document.status === 'settled') return 'open_settled'
  const charged = document.multicurrency?.total ?? chargedBy(document)
  if (charged === toMajor(total + 1, currency)) return 'total_by_smallest_unit'
  if (charged !== toMajor(total, currency)) return 'total'
  if (document.taxes !== toEuros(total - (invoice.total_excluding_tax ?? total), currency)) return 'tax'
  const bare = (text: string | null | undefined) => text?.replace(/^PT/, '') ?? null
  const taxIds = (invoice.customer_tax_ids ?? []).map(({ value }) => bare(value))
  const fiscalId = bare(clients.get(document.client.id)?.fiscal_id)
  if (fiscalId === null && taxIds.length > 0) return 'tax_id_one_side'
  if (fiscalId !== null && !taxIds.includes(fiscalId)) return 'tax_id'
  if (document.type === 'SimplifiedInvoice' && chargedBy(document) > 100) return 'simplified_over_limit'
  if (invoice.total_taxes.some(tax => tax.taxability_reason === 'reverse_charge')) return 'exemption'
  const credited = relatedTo(document.id)
    .filter(isNote)
    .reduce((sum, note) => sum + (note.multicurrency?.total ?? chargedBy(note)), 0)
  const own = invoice.pre_payment_credit_notes_amount + invoice.post_payment_credit_notes_amount
  const apart = credited - toMajor(own, currency)
  if (status !== 'void' && Math.abs(apart) > 0.0001)
    return apart < 0 ? 'credit_note_missing' : 'credit_note_unmatched'
  const [day, finalized] = [
    document.date.split('/').reverse().join('-'),
    lisbonDayOf((invoice.status_transitions.finalized_at ?? 0) * 1000),
  ]
  if (day !== finalized) return day < finalized ? 'wrong_month' : 'late'
  assert.equal(metadata.ix_id, String(document.id))
  assert.equal(metadata.ix_type, document.type)
  assert.equal(document.status, fitting[status])
  return null
}

/** Whether another document has its number. */
function isCopied(all: readonly IxDocument[], id: number): boolean {
  const { type, sequence_number } = all.find(each => each.id === id) ?? assert.fail()
  return all.some(
    other => other.id !== id && other.type === type && other.sequence_number === sequence_number,
  )
}

describe('the documents of the sandbox', () => {
  it('are the same for one seed and the same calls, and different for another seed', () => {
    const build = (seed: number) => {
      const account = createAccount({ seed: 7 })
      const documents = createDocuments(account, { seed, differences: 14 })
      account.advance(5 * 86_400)
      documents.follow()
      documents.plant('total')
      return [[...account.invoices], account.events, [...documents.documents], [...documents.clients]]
    }
    assert.deepEqual(build(3), build(3))
    assert.notDeepEqual(build(3), build(4))
  })

  it('change no byte of a Stripe account that is created without documents', () => {
    const account = createAccount({ seed: 7, invoices: 120 })
    account.advance(20 * 86_400)
    const { invoices, customers, taxRates, events } = account
    const all = JSON.stringify([[...invoices], [...customers], [...taxRates], events])
    assert.equal(
      createHash('sha256').update(all).digest('hex'),
      'bfbc3926303ebe54049ac29235f5ae663e2ff09ccfe8d9556fccc9a8cd47250d',
    )
  })

  it('change only metadata at Stripe, without events', () => {
    const [plain, tied] = [createAccount({ seed: 7 }), createAccount({ seed: 7 })]
    createDocuments(tied)
    assert.deepEqual(tied.events, [])
    const bare = ({ metadata, ...rest }: StripeInvoice) => ({
      ...rest,
      metadata: Object.fromEntries(Object.entries(metadata).filter(([name]) => !name.startsWith('ix_'))),
    })
    for (const account of [plain, tied]) account.advance(5 * 86_400)
    assert.deepEqual([...tied.invoices.values()].map(bare), [...plain.invoices.values()])
    assert.deepEqual(
      tied.events.map(({ id }) => id),
      plain.events.map(({ id }) => id),
    )
  })

  it('match their finalized invoice in total, day, status and tax ID when they are ordinary', () => {
    const account = createAccount({ invoices: 600 })
    const documents = createDocuments(account, { states: 'ordinary' })
    let count = 0
    for (const invoice of account.invoices.values()) {
      assert.equal(differenceOf(invoice, documents), null, invoice.id)
      const found = [...documents.documents.values()].filter(({ reference }) => reference === invoice.id)
      const hasNone = invoice.status === 'draft' || isNegative(invoice)
      assert.equal(found.length, hasNone ? 0 : 1)
      if (hasNone) {
        assert.equal(invoice.metadata.ix_state, invoice.status === 'draft' ? undefined : 'ignored')
        continue
      }
      count++
      const [{ date } = assert.fail()] = found
      const finalizedAt = invoice.status_transitions.finalized_at ?? 0
      assert.equal(date.split('/').reverse().join('-'), lisbonDayOf(finalizedAt * 1000))
      const { ix_state, ix_created_at = '', ix_attempted_at = '' } = invoice.metadata
      assert.equal(ix_state, 'synced')
      for (const moment of [ix_created_at, ix_attempted_at])
        assert.equal(new Date(moment).toISOString(), moment)
      assert.ok(ix_attempted_at <= ix_created_at && Date.parse(ix_created_at) <= account.clock * 1000)
    }
    const certifying = [...documents.documents.values()].filter(document => !isNote(document))
    assert.equal(certifying.length, count)
    assert.equal(documents.states.size + documents.planted.length, 0)
  })

  it('have amounts in euros that add up, and the total in another currency beside them', () => {
    assert.deepEqual(
      [toMajor(1_200, 'jpy'), toMajor(1_234, 'kwd'), toMajor(1_234, 'eur')],
      [1_200, 1.234, 12.34],
    )
    const account = createAccount({ invoices: 400 })
    const { documents } = createDocuments(account, { states: 'ordinary' })
    const places = { eur: 2, usd: 2, jpy: 0, kwd: 3 }
    const rates = { eur: 1, usd: 1.087, jpy: 163.93, kwd: 0.3323 }
    const seen = new Set<string>()
    for (const document of documents.values()) {
      if (isNote(document)) continue
      const { total, currency } = account.invoices.get(document.reference ?? '') ?? assert.fail()
      const code = currency as keyof typeof places
      const { sum, discount, before_taxes, taxes, multicurrency, items } = document
      const theirs = total / 10 ** places[code]
      const charged = before_taxes + taxes
      assert.equal(document.currency, 'Euro')
      assert.deepEqual(
        multicurrency,
        code === 'eur' ? undefined : { rate: rates[code], code, total: Number(theirs.toFixed(places[code])) },
      )
      // Amounts before and of taxes are rounded each for itself.
      assert.ok(Math.abs(charged - theirs / rates[code]) < (code === 'eur' ? 1e-9 : 0.0101))
      for (const amount of [sum, discount, before_taxes, taxes, document.total])
        assert.equal(String(amount), String(Number(amount.toFixed(2))))
      assert.equal((sum - discount).toFixed(2), before_taxes.toFixed(2))
      const ofItems = items.reduce((all, { subtotal }) => all + subtotal, 0)
      assert.ok(Math.abs(ofItems - before_taxes) < 0.01 * items.length + 1e-9)
      seen.add(code)
    }
    assert.deepEqual([...seen].sort(), ['eur', 'jpy', 'kwd', 'usd'])
  })

  it('have retained tax for some Portuguese companies, outside of the total', () => {
    const account = createAccount({ invoices: 400 })
    const { documents } = createDocuments(account, { states: 'ordinary' })
    const withheld = [...documents.values()].filter(({ retention }) => retention !== null)
    assert.ok(withheld.length > 5)
    const owners = new Set(withheld.map(({ client }) => client.id))
    for (const { type, before_taxes, taxes, retention, total, client, multicurrency } of documents.values()) {
      const part = Math.round(before_taxes * Number(retention ?? 0)) / 100
      assert.equal((before_taxes + taxes - part).toFixed(2), total.toFixed(2))
      if (retention !== null) {
        assert.ok(['25', '11.5'].includes(retention) && multicurrency === undefined)
        assert.match(client.fiscal_id ?? '', /^(PT)?5\d{8}$/)
      } else if (owners.has(client.id) && before_taxes > 0)
        assert.ok(!['Invoice', 'InvoiceReceipt'].includes(type))
    }
  })

  it('do not exist for negative invoices', () => {
    const account = createAccount({ invoices: 600 })
    const { documents, change } = createDocuments(account)
    const negative = [...account.invoices.values()].filter(
      invoice => invoice.status !== 'draft' && isNegative(invoice),
    )
    assert.ok(negative.length > 3)
    for (const { id, metadata } of negative) {
      assert.equal(metadata.ix_state, 'ignored')
      assert.throws(() => change('create', id), /negative/)
    }
    for (const { before_taxes, taxes, total } of documents.values())
      assert.ok(before_taxes >= 0 && taxes >= 0 && total >= 0)
  })

  it('have every kind, type and status, and are mostly ordinary', () => {
    const account = createAccount({ invoices: 200 })
    const { documents, states } = createDocuments(account)
    assert.deepEqual([...new Set(states.values())].sort(), stateKinds.toSorted())
    assert.ok(states.size < account.invoices.size / 2)
    const all = [...documents.values()]
    assert.deepEqual([...new Set(all.map(({ type }) => type))].sort(), Object.keys(ixTypes).sort())
    assert.deepEqual(
      [...new Set(all.map(({ status }) => status))].sort(),
      ['draft', 'final', 'sent', 'settled', 'canceled', 'deleted', 'second_copy'].sort(),
    )
    const claims = new Set([...account.invoices.values()].map(({ metadata }) => metadata.ix_state))
    for (const claim of ['creating', 'synced', 'failed', 'ignored', undefined]) assert.ok(claims.has(claim))
    assert.ok(all.some(({ reference }) => reference === null || !reference.startsWith('in_1')))
    for (const document of all) {
      assert.equal(document.status === 'draft', document.sequence_number === null)
      if (document.sequence_number !== null) assert.match(document.sequence_number, /^\d+\/[A-Z]+$/)
    }
    // A second print has the number of its original.
    const numbers = all
      .filter(({ id, status }) => status !== 'second_copy' || !isCopied(all, id))
      .map(({ sequence_number }) => sequence_number)
      .filter(number => number !== null)
    assert.equal(new Set(numbers).size, numbers.length)
  })

  it('match the state that was planned for each invoice', () => {
    const account = createAccount({ invoices: 200 })
    const { documents, states } = createDocuments(account)
    const certifying: readonly string[] = documentTypes
    for (const [id, kind] of states) {
      const { metadata, status } = account.invoices.get(id) ?? assert.fail()
      const exact = [...documents.values()].filter(({ reference }) => reference === id)
      const linked = exact.filter(({ type }) => certifying.includes(type))
      const named = documents.get(Number(metadata.ix_id))
      const age = account.clock * 1000 - Date.parse(metadata.ix_attempted_at ?? '')
      const [group = '', rest = ''] = kind.split(/_(.*)/)
      assert.notEqual(status, 'void')
      if (group === 'by' && rest.startsWith('reference'))
        assert.deepEqual(
          [linked.length, linked[0]?.type, metadata.ix_id],
          [1, rest.slice(10), undefined],
          kind,
        )
      else if (kind === 'by_uid') {
        const called = [...documents.values()].filter(({ proprietary_uid }) => proprietary_uid === id)
        assert.deepEqual([linked.length, called.length, named], [0, 1, undefined])
      } else if (/payment|number/.test(kind)) {
        const { number, payments } = account.invoices.get(id) ?? assert.fail()
        const paid = payments.data.map(({ payment }) => payment.payment_intent)
        const names = new Set([number, ...paid, ...paid.map(payment => `Order #${payment}`)])
        const naming = [...documents.values()].filter(
          ({ reference, proprietary_uid }) => names.has(reference) || names.has(proprietary_uid),
        )
        assert.equal(naming.length, /_of_/.test(kind) ? 0 : 1, kind)
        assert.deepEqual([linked.length, named], [0, undefined], kind)
      } else if (group === 'by') assert.deepEqual([linked.length, named !== undefined], [0, true], kind)
      else if (group === 'status') assert.deepEqual([linked[0]?.id, named?.status], [named?.id, rest], kind)
      else if (group === 'only')
        assert.deepEqual([exact[0]?.type, linked.length, metadata.ix_state], [rest, 0, undefined], kind)
      else if (group === 'nearly') assert.deepEqual([exact.length, metadata.ix_state], [0, undefined], kind)
      else if (kind === 'creating') assert.ok(linked.length === 0 && age < 600_000)
      else if (kind === 'creating_for_long') assert.ok(linked.length === 0 && age > 86_400_000)
      else if (group === 'failed') assert.ok(metadata.ix_error)
      else if (kind === 'vanished') assert.ok(/^\d+$/.test(metadata.ix_id ?? '') && named === undefined)
      else if (kind === 'deleted') assert.equal(named?.status, 'deleted')
      else if (kind === 'archived') assert.equal(named?.archived, true)
      else if (group === 'two' || kind.endsWith('canceled') || kind.endsWith('and_live'))
        assert.equal(linked.length, 2, kind)
      else if (kind.startsWith('copy_')) {
        const [original, copy] = linked
        assert.deepEqual(
          [linked.length, copy?.status, copy?.sequence_number, named?.id],
          [2, 'second_copy', original?.sequence_number, kind === 'copy_recorded' ? copy?.id : original?.id],
        )
      } else if (kind === 'printed_as_receipt' && status === 'paid')
        assert.deepEqual([named?.type, named?.sequence_number?.split('/')[1]], ['Invoice', 'FR'])
      else if (kind === 'with_credit_note') assert.deepEqual([exact.length, linked.length], [3, 1])
      if (kind === 'two_live_one_recorded') assert.equal(Math.max(...idsOf(linked)), named?.id)
    }
    const references = [...documents.values()].map(({ reference }) => reference ?? '')
    const nearly = (holds: (reference: string, id: string) => boolean) =>
      references.some(reference =>
        [...states.keys()].some(id => reference !== id && reference !== '' && holds(reference, id)),
      )
    assert.ok(nearly((reference, id) => reference.length > 9 && id.startsWith(reference)))
    assert.ok(nearly((reference, id) => reference.toLowerCase() === id.toLowerCase()))
    assert.ok(nearly((reference, id) => reference === `${id} `))
  })

  it('differ from Stripe exactly at the planted differences of every kind', () => {
    const account = createAccount({ invoices: 600 })
    const documents = createDocuments(account, { states: 'ordinary', differences: differenceKinds.length })
    assert.deepEqual(account.events, [])
    for (const kind of differenceKinds) documents.plant(kind)
    const isApart = ({ kind }: Planted) => /^document_(of|without)_/.test(kind)
    const atInvoices = documents.planted.filter(each => !isApart(each))
    const planted = new Map(atInvoices.map(({ invoice_id, kind }) => [invoice_id, kind]))
    assert.equal(planted.size, 2 * (differenceKinds.length - 2))
    for (const { kind, invoice_id, document_id } of documents.planted.filter(isApart)) {
      const { reference, status } = documents.documents.get(document_id ?? 0) ?? assert.fail()
      assert.deepEqual([reference, status], [invoice_id, 'settled'])
      assert.equal(invoice_id === null, kind === 'document_without_invoice')
      assert.ok(!account.invoices.has(invoice_id ?? ''))
    }
    for (const invoice of account.invoices.values())
      assert.equal(differenceOf(invoice, documents), planted.get(invoice.id) ?? null, invoice.id)
    for (const { invoice_id, document_id, kind } of documents.planted) {
      const isGone = ['paid_without_document', 'open_without_document', 'stuck_creating', 'failed'].includes(
        kind,
      )
      assert.equal(document_id === null, isGone)
      if (kind === 'failed') assert.ok(account.invoices.get(invoice_id ?? '')?.metadata.ix_error)
    }
    assert.ok(account.events.length > 0, 'those of later are announced')
    const [taken] = planted.keys()
    assert.throws(() => documents.plant('total', taken ?? ''), /no in_/)
    assert.throws(() => documents.plant('live_document_of_void', 'in_none'), /no in_none/)
  })

  it('change on demand, and refuse changes that their status does not allow', () => {
    const account = createAccount({ invoices: 50 })
    const { documents, change } = createDocuments(account, { states: 'ordinary' })
    const invoice = account.change('finalize')
    assert.throws(() => change('settle', invoice), /no document/)
    const id = change('create', invoice)
    const made = () => documents.get(id)
    assert.deepEqual([made()?.reference, made()?.status], [invoice, 'final'])
    change('settle', id)
    assert.equal(made()?.status, 'settled')
    assert.throws(() => change('finalize', id), /is settled/)
    change('cancel', invoice)
    assert.equal(made()?.status, 'canceled')
    change('refer', id, 'outra coisa')
    assert.equal(made()?.reference, 'outra coisa')
    change('refer', id)
    assert.equal(made()?.reference, null)
    change('delete', id)
    assert.equal(made()?.status, 'deleted')
    change('vanish', id)
    assert.equal(made(), undefined)
    assert.throws(() => change('create', 'in_none'), /no invoice/)
    assert.throws(() => change('create', account.change('create')), /draft/)
    const all = createDocuments(createAccount())
    const draft = [...all.documents.values()].find(({ status }) => status === 'draft') ?? assert.fail()
    all.change('finalize', draft.id)
    assert.match(all.documents.get(draft.id)?.sequence_number ?? '', /^\d+\//)
  })

  it('are recorded at Stripe as creating and then as synced, with events', () => {
    const account = createAccount({ invoices: 50 })
    const documents = createDocuments(account, { states: 'ordinary' })
    const invoice = account.change('finalize')
    const before = account.events.length
    const id = documents.change('create', invoice)
    const events = account.events.slice(before)
    assert.deepEqual(
      events.map(({ type, data }) => [
        type,
        (data.object as { metadata: Record<string, string> }).metadata.ix_state,
      ]),
      [
        ['invoice.updated', 'creating'],
        ['invoice.updated', 'synced'],
      ],
    )
    const { metadata } = events[1]?.data.previous_attributes ?? {}
    assert.deepEqual(metadata, { ix_state: 'creating', ix_id: null, ix_type: null, ix_created_at: null })
    assert.equal(account.invoices.get(invoice)?.metadata.ix_id, String(id))
    account.setMetadata(invoice, { ix_id: String(id) })
    assert.equal(account.events.length, before + 2, 'what changes nothing is not announced')
    account.setMetadata(invoice, { ix_id: '' })
    assert.equal('ix_id' in (account.invoices.get(invoice)?.metadata ?? {}), false)
    assert.throws(() => account.setMetadata('in_none', {}), /no invoice/)
  })

  it('follow each event of Stripe once', () => {
    const account = createAccount({ invoices: 200 })
    const documents = createDocuments(account, { states: 'ordinary' })
    documents.plant('paid_without_document')
    const [gone = assert.fail()] = documents.planted
    for (let day = 0; day < 30; day++) {
      account.advance(86_400)
      documents.follow()
    }
    assert.equal(documents.follow(), 0)
    for (const invoice of account.invoices.values()) {
      const difference = differenceOf(invoice, documents)
      // Finalized and voided on the same day: nobody had time to make a document.
      if (difference === 'paid_without_document' && invoice.status === 'void') continue
      assert.equal(difference, invoice.id === gone.invoice_id ? 'paid_without_document' : null, invoice.id)
    }
    const all = createAccount({ invoices: 200 })
    const wrong = createDocuments(all)
    all.advance(30 * 86_400)
    assert.ok(wrong.follow() > 50)
    for (const [id, kind] of wrong.states)
      if (kind === 'nothing') assert.equal(all.invoices.get(id)?.metadata.ix_state, undefined)
  })
})

describe('the API of the sandbox’s InvoiceXpress', () => {
  const shared = share()

  it('needs the key in the query, and answers 401 without it', async () => {
    const { sandbox } = shared()
    assert.equal((await ask(sandbox, '/invoices.json')).status, 200)
    for (const wrong of ['', 'guessed'])
      assert.equal((await ask(sandbox, `/invoices.json?api_key=${wrong}`)).status, 401)
    const headers = { authorization: `Bearer ${key}` }
    assert.equal((await fetch(`${sandbox.address}/invoices.json`, { headers })).status, 401)
  })

  it('gives errors in four forms, one after the other', async t => {
    const { sandbox } = await start(t, { invoices: 1 })
    const shapes: string[] = []
    for (let turn = 0; turn < 5; turn++) {
      const { json } = await ask(sandbox, '/invoices/1.json')
      shapes.push(JSON.stringify(json).replace(/"The [^"]*"/, '…'))
    }
    const [first] = shapes
    assert.deepEqual(shapes, [
      '{"errors":{"error":…}}',
      '{"errors":[{"error":…}]}',
      '{"error":{"code":404,"message":…}}',
      '{"reason":…}',
      first,
    ])
  })

  it('gives a Multibanco reference only for open Portuguese documents', async () => {
    const { sandbox, documents } = shared()
    const seen = new Set<string>()
    for (const document of documents.documents.values()) {
      const { id, type, status, client, multicurrency } = document
      const { json } = await ask(sandbox, pathOf(document))
      const [{ mb_reference }] = Object.values(json) as [{ mb_reference: unknown }]
      const isOwed = status === 'final' && ['Invoice', 'SimplifiedInvoice', 'VatMossInvoice'].includes(type)
      const isHere = client.country === 'Portugal' && multicurrency === undefined
      if (!isOwed || !isHere) assert.equal(mb_reference, null, `${type} ${id}`)
      else seen.add(typeof mb_reference)
    }
    assert.deepEqual([...seen].sort(), ['object', 'string'])
  })

  it('lists every document once by descending ID, ten per page by default, fifty at most', async t => {
    const { sandbox, documents } = shared()
    const truth = newestFirst(documents.documents.values()).filter(({ archived }) => !archived)
    assert.deepEqual(await listAll(sandbox), truth.map(plainly))
    const total_entries = truth.length
    const sizes = {
      '': 10,
      'per_page=3': 3,
      'per_page=50': 50,
      'per_page=500': 50,
      'per_page=x': 10,
      'per_page=0': 10,
    }
    for (const [query, per_page] of Object.entries(sizes)) {
      const { json } = await ask(sandbox, `/invoices.json?${query}`)
      assert.equal(json.invoices.length, per_page)
      const total_pages = Math.ceil(total_entries / per_page)
      assert.deepEqual(json.pagination, { total_entries, per_page, current_page: 1, total_pages })
    }
    const third = await ask(sandbox, '/invoices.json?per_page=7&page=3')
    assert.deepEqual(idsOf(third.json.invoices), idsOf(truth.slice(14, 21)))
    const beyond = await ask(sandbox, '/invoices.json?page=999')
    assert.deepEqual(
      [beyond.status, beyond.json.invoices, beyond.json.pagination.current_page],
      [200, [], 999],
    )
    const none = await start(t, { invoices: 0 })
    const { json } = await ask(none.sandbox, '/invoices.json')
    assert.deepEqual(json, {
      invoices: [],
      pagination: { total_entries: 0, per_page: 10, current_page: 1, total_pages: 1 },
    })
  })

  it('filters by type, status, days, archive and text, where sent stands for final', async () => {
    const { sandbox, documents } = shared()
    const truth = newestFirst(documents.documents.values())
    const day = ({ date }: IxDocument) => date.split('/').reverse().join('')
    const middle = truth[60] ?? assert.fail()
    const later = truth[20] ?? assert.fail()
    const name = middle.client.name
    const filters: [string, (document: IxDocument) => boolean][] = [
      ['type[]=Invoice', ({ type }) => type === 'Invoice'],
      ['type[]=CreditNote&type[]=Receipt', ({ type }) => type === 'CreditNote' || type === 'Receipt'],
      ['status[]=sent', ({ status }) => status === 'final' || status === 'sent'],
      ['status[]=draft&status[]=deleted', ({ status }) => status === 'draft' || status === 'deleted'],
      ['status[]=settled&type[]=CashInvoice', d => d.status === 'settled' && d.type === 'CashInvoice'],
      ['non_archived=true', ({ archived }) => !archived],
      ['archived=false', ({ archived }) => !archived],
      [`date[from]=${middle.date}`, document => day(document) >= day(middle)],
      [
        `date[from]=${middle.date}&date[to]=${later.date}`,
        document => day(document) >= day(middle) && day(document) <= day(later),
      ],
      [`text=${encodeURIComponent(name.toUpperCase())}`, ({ client }) => client.name === name],
      ['text=Feito', ({ observations }) => observations === 'Feito à mão'],
      ['nothing_known=1', () => true],
    ]
    const away = truth.filter(({ archived }) => archived)
    assert.ok(away.length > 0)
    assert.deepEqual(idsOf(await listAll(sandbox, 'archived=true')), idsOf(away))
    for (const [query, holds] of filters) {
      // What was put away is in no list but its own.
      const expected = truth.filter(document => !document.archived && holds(document))
      assert.ok(expected.length > 0, query)
      assert.deepEqual(idsOf(await listAll(sandbox, query)), idsOf(expected), query)
    }
    for (const wrong of ['type[]=Quote', 'status[]=final', 'date[from]=2026-10-01', 'date[to]=31/02/2026'])
      assert.equal((await ask(sandbox, `/invoices.json?${wrong}`)).status, 422, wrong)
  })

  it('finds a reference anywhere inside another text, in any case', async () => {
    const { sandbox, documents } = shared()
    const found: Record<string, number> = {}
    for (const [id, kind] of documents.states) {
      const list = await listAll(sandbox, `reference=${id}`)
      const truth = newestFirst(documents.documents.values()).filter(
        ({ reference, archived }) => !archived && reference?.toLowerCase().includes(id.toLowerCase()),
      )
      assert.deepEqual(idsOf(list), idsOf(truth))
      found[kind] = list.length
    }
    assert.deepEqual(
      [found.nearly_space, found.nearly_longer, found.nearly_case, found.nearly_prefix, found.two_live],
      [1, 1, 1, 0, 2],
    )
  })

  it('gives a document by its type and ID under its type’s key, and 404 for another type', async () => {
    const { sandbox, documents } = shared()
    const seen = new Set<string>()
    for (const document of documents.documents.values()) {
      if (seen.has(document.type)) continue
      seen.add(document.type)
      const { status, json } = await ask(sandbox, pathOf(document))
      assert.equal(status, 200)
      assert.deepEqual(Object.keys(json), [ixTypes[document.type].key])
      const { items, ...rest } = plainly(json[ixTypes[document.type].key])
      const { items: listed, ...expected } = plainly(document)
      assert.deepEqual(rest, expected)
      assert.equal(items.length, listed.length)
      for (const { path } of Object.values(ixTypes))
        if (path !== ixTypes[document.type].path)
          assert.equal((await ask(sandbox, `/${path}/${document.id}.json`)).status, 404)
    }
    assert.equal(seen.size, Object.keys(ixTypes).length)
    for (const path of ['/invoices/1.json', '/invoices/x.json', '/quotes/1.json', '/'])
      assert.equal((await ask(sandbox, path)).status, 404, path)
    const posted = await fetch(`${sandbox.address}/invoices.json?api_key=${key}`, { method: 'POST' })
    assert.equal(posted.status, 404)
  })

  it('writes days as dd/mm/yyyy, money as numbers, quantities as text, and no change time', async () => {
    const { sandbox } = shared()
    for (const document of await listAll(sandbox)) {
      for (const day of [document.date, document.due_date]) assert.match(day, /^\d\d\/\d\d\/\d{4}$/)
      for (const amount of ['sum', 'discount', 'before_taxes', 'taxes', 'total'] as const)
        assert.equal(typeof document[amount], 'number')
      assert.equal('created_at' in document || 'updated_at' in document, false)
      assert.ok(Number.isInteger(document.id) && document.items.length > 0)
      for (const { quantity, unit_price } of document.items)
        assert.ok(typeof quantity === 'string' && typeof unit_price === 'string')
    }
    const [one = assert.fail()] = await listAll(sandbox, 'type[]=Invoice')
    const { json } = await ask(sandbox, pathOf(one))
    assert.equal(typeof json.invoice.items[0].quantity, 'number')
  })

  it('writes some numbers as text and some Booleans as numbers, like the real InvoiceXpress', async () => {
    const { sandbox } = shared()
    const { json } = await ask(sandbox, '/invoices.json?per_page=50')
    const kinds = new Set<string>()
    for (const { archived, total, client, items } of json.invoices)
      for (const [name, value] of Object.entries({
        archived,
        total,
        client: client.id,
        rate: items[0]?.tax.value,
      }))
        kinds.add(`${name} ${typeof value}`)
    for (const odd of ['archived number', 'total string', 'client string', 'rate string'])
      assert.ok(kinds.has(odd), odd)
    for (const usual of ['archived boolean', 'total number', 'client number', 'rate number'])
      assert.ok(kinds.has(usual), usual)
  })

  it('writes uncertain fields in every known form: currencies, rates, draft numbers, retentions', async t => {
    const { sandbox, documents } = await start(t, { invoices: 800 })
    const seen = new Set<string>()
    for (let page = 1; page <= 20; page++) {
      const { json } = await ask(sandbox, `/invoices.json?per_page=50&page=${page}`)
      for (const listed of json.invoices) {
        const truth = documents.documents.get(Number(listed.id)) ?? assert.fail()
        if (truth.sequence_number === null)
          seen.add(`number ${listed.sequence_number}`).add(`printed ${listed.inverted_sequence_number}`)
        if (listed.items.some((item: { tax: { value: unknown } }) => item.tax.value === null))
          seen.add('rate null')
        if (listed.retention !== null) seen.add(`retention ${listed.retention}`)
        if (truth.multicurrency === undefined) {
          assert.equal('multicurrency' in listed, false)
          continue
        }
        if (listed.multicurrency === undefined) {
          seen.add('multicurrency left out')
          continue
        }
        const { rate, currency, total } = listed.multicurrency
        assert.equal(Number(total), truth.multicurrency.total)
        seen.add(`multicurrency rate ${typeof rate}`).add(`multicurrency total ${typeof total}`)
        seen.add(`currency ${currency}`)
        const isReversed = Math.abs(Number(rate) - truth.multicurrency.rate) > 1e-6
        seen.add(isReversed ? 'rate reversed' : 'rate as it is')
      }
    }
    for (const form of [
      ...['number draft', 'number rascunho', 'printed draft', 'printed rascunho', 'printed null'],
      ...['rate null', 'retention 25', 'retention 11.5', 'multicurrency left out'],
      ...['multicurrency rate number', 'multicurrency rate string', 'multicurrency total number'],
      ...['multicurrency total string', 'currency USD', 'currency US Dollar', 'currency Yen', 'currency JPY'],
      ...['rate reversed', 'rate as it is'],
    ])
      assert.ok(seen.has(form), form)
  })

  it('lists a document’s client without tax ID, and gives the tax ID by client ID', async t => {
    const { sandbox, account, documents } = await start(t, { states: 'ordinary', invoices: 500 })
    const prefixed = new Set<boolean>()
    const written = new Set<string>()
    const owners = new Map<number, unknown>()
    const { json: page } = await ask(sandbox, '/invoices.json?per_page=50')
    for (const { client } of page.invoices) assert.deepEqual(Object.keys(client), ['id', 'name', 'country'])
    for (const document of await listAll(sandbox)) {
      if (isNote(document)) continue
      const invoice = account.invoices.get(document.reference ?? '') ?? assert.fail()
      const owner = invoice.customer ?? invoice.customer_account
      assert.equal(owners.get(document.client.id) ?? owner, owner, 'one client for a customer')
      owners.set(document.client.id, owner)
    }
    assert.equal(new Set(owners.values()).size, owners.size)
    const alone = [...documents.documents.values()].slice(0, 20)
    const keys = await Promise.all(
      alone.map(async document => {
        const { json } = await ask(sandbox, pathOf(document))
        const { fiscal_id } = json[ixTypes[document.type].key].client
        if (fiscal_id !== undefined) assert.equal(fiscal_id, document.client.fiscal_id)
        return fiscal_id === undefined
      }),
    )
    assert.deepEqual([...new Set(keys)].sort(), [false, true])
    for (const [id, client] of documents.clients) {
      const { status, json } = await ask(sandbox, `/clients/${id}.json`)
      const { id: given, fiscal_id } = json.client
      for (const [name, value] of Object.entries({ id: given, fiscal_id }))
        written.add(`${name} ${typeof value}`)
      const plain = {
        ...json.client,
        id: Number(given),
        fiscal_id: fiscal_id === null ? null : String(fiscal_id),
      }
      assert.deepEqual([status, plain], [200, client])
      if (/^(PT)?5\d{8}$/.test(client.fiscal_id ?? ''))
        prefixed.add(client.fiscal_id?.startsWith('PT') === true)
    }
    assert.equal(prefixed.size, 2, 'with the country before it, and without')
    for (const odd of ['id string', 'id number', 'fiscal_id string', 'fiscal_id number'])
      assert.ok(written.has(odd), odd)
    assert.equal((await ask(sandbox, '/clients/1.json')).status, 404)
  })

  it('credits and pays a document up to its limit, and relates the new document to it', async t => {
    const { sandbox, documents } = await start(t, { states: 'ordinary' })
    const byStatus = (status: string, type: string) =>
      [...documents.documents.values()].find(each => each.status === status && each.type === type) ??
      assert.fail()
    const open = byStatus('final', 'Invoice')
    const note = documents.change('credit', open.id, '0.25')
    const receipt = documents.change('pay', open.id)
    const { json } = await ask(sandbox, `/document/${open.id}/related_documents.json`)
    assert.deepEqual(
      json.documents.map(({ id, type }: IxDocument) => [Number(id), type]),
      [
        [note, 'CreditNote'],
        [receipt, 'Receipt'],
      ],
    )
    assert.equal(documents.documents.get(open.id)?.status, 'settled')
    assert.throws(() => documents.change('credit', open.id, '0.8'), /left/)
    assert.throws(() => documents.change('pay', open.id), /does not pay/)
    assert.throws(() => documents.change('credit', note), /is a CreditNote/)
    assert.throws(() => documents.change('credit', byStatus('canceled', 'Invoice').id), /does not credit/)
    const printed = (await ask(sandbox, pathOf(open))).json.invoice
    const [number, series] = open.sequence_number?.split('/') ?? []
    assert.equal(printed.inverted_sequence_number, `${series}/${number}`)
    assert.match(printed.atcud, new RegExp(`^[A-Z0-9]{8}-${number}$`))
    assert.equal((await ask(sandbox, '/api/qr_codes/1.json')).status, 404)
  })

  it('gives a deleted document by ID, and 404 for a vanished one', async () => {
    const { sandbox, account, documents } = shared()
    for (const [id, kind] of documents.states) {
      const { ix_id } = account.invoices.get(id)?.metadata ?? {}
      if (kind === 'vanished') assert.equal((await ask(sandbox, `/invoices/${ix_id}.json`)).status, 404)
      if (kind !== 'deleted') continue
      const { status, json } = await ask(sandbox, `/invoices/${ix_id}.json`)
      assert.deepEqual([status, json.invoice.status], [200, 'deleted'])
    }
  })

  it('answers 429 without Retry-After beyond its rate per minute', async t => {
    const { sandbox } = await start(t, { ratePerMinute: 3 })
    const answers: Asked[] = []
    for (let turn = 0; turn < 4; turn++) answers.push(await ask(sandbox, '/invoices.json'))
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200, 429],
    )
    assert.equal(answers[3]?.headers.get('retry-after'), null)
  })

  it('shows a change at once by ID, and in lists only after a delay', async t => {
    const wait = takeClock(t)
    const { sandbox, account, documents } = await start(t, { states: 'ordinary', lagMs: 600_000 })
    const [settled] = await listAll(sandbox, 'status[]=settled')
    const old = settled ?? assert.fail()
    const invoice = account.change('finalize')
    const id = documents.change('create', invoice)
    documents.change('cancel', old.id)
    documents.change('refer', old.id, 'later')
    const created = documents.documents.get(id) ?? assert.fail()
    const late = await listAll(sandbox)
    assert.equal(
      late.some(document => document.id === id),
      false,
    )
    assert.deepEqual(
      late.find(document => document.id === old.id),
      old,
    )
    assert.equal((await ask(sandbox, pathOf(created))).status, 200)
    const { json } = await ask(sandbox, pathOf(old))
    assert.equal(json[ixTypes[old.type].key].status, 'canceled')
    wait(600_000)
    assert.deepEqual(await listAll(sandbox), newestFirst(documents.documents.values()).map(plainly))
  })
})

describe('the PDF of a document in the sandbox', () => {
  const settled = (documents: ReadonlyMap<number, IxDocument>) =>
    [...documents.values()].filter(({ status }) => status === 'settled')

  it('is not ready for the given number of requests, then has an address with a secret', async t => {
    const { sandbox, documents } = await start(t, { pdfDelay: 2 })
    const [one = assert.fail(), other = assert.fail()] = settled(documents.documents)
    const statuses: number[] = []
    let last: Asked | undefined
    for (let turn = 0; turn < 3; turn++) {
      last = await ask(sandbox, `/api/pdf/${one.id}.json`)
      statuses.push(last.status)
      if (last.status === 202) assert.deepEqual(last.json, {})
    }
    assert.deepEqual(statuses, [202, 202, 200])
    const { pdfUrl } = last?.json.output ?? {}
    assert.equal(new URL(pdfUrl).origin, sandbox.address)
    assert.equal(pdfUrl.includes(key), false)
    const answer = await fetch(pdfUrl)
    const text = Buffer.from(await answer.arrayBuffer()).toString('latin1')
    assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, 'application/pdf'])
    assert.match(text, /^%PDF-1\.4.*%%EOF\n$/s)
    assert.ok(text.includes(one.sequence_number ?? '') && text.includes(String(one.reference)))
    assert.equal((await fetch(pdfUrl.replace(String(one.id), String(other.id)))).status, 404)
    assert.equal((await fetch(`${sandbox.address}/pdf/${one.id}/guessed.pdf`)).status, 404)
  })

  it('is not ready until a control allows it', async t => {
    const { sandbox, documents } = await start(t, { pdfDelay: Number.POSITIVE_INFINITY })
    const [one = assert.fail(), other = assert.fail()] = settled(documents.documents)
    const statusOf = async ({ id }: IxDocument) => (await ask(sandbox, `/api/pdf/${id}.json`)).status
    for (let turn = 0; turn < 5; turn++) assert.equal(await statusOf(one), 202)
    sandbox.finishPdf(one.id)
    assert.deepEqual([await statusOf(one), await statusOf(other)], [200, 202])
    assert.equal((await post(sandbox, 'ready')).status, 200)
    assert.equal(await statusOf(other), 200)
  })

  it('has an address that expires, and a new address at the next request', async t => {
    const wait = takeClock(t)
    const { sandbox, documents } = await start(t, { pdfDelay: 0, pdfLifetimeMs: 90_000 })
    const [one = assert.fail()] = settled(documents.documents)
    const address = async () => (await ask(sandbox, `/api/pdf/${one.id}.json`)).json.output.pdfUrl
    const first = await address()
    assert.equal((await fetch(first)).status, 200)
    wait(90_001)
    assert.equal((await fetch(first)).status, 403)
    const second = await address()
    assert.notEqual(second, first)
    assert.equal((await fetch(second)).status, 200)
  })

  it('is refused with 422 for a draft, 404 for a missing document, 401 without the key', async t => {
    const { sandbox, documents } = await start(t, { pdfDelay: 0 })
    const of = (wanted: string) =>
      [...documents.documents.values()].find(({ status }) => status === wanted)?.id
    assert.equal((await ask(sandbox, `/api/pdf/${of('draft')}.json`)).status, 422)
    assert.equal((await ask(sandbox, `/api/pdf/${of('deleted')}.json`)).status, 404)
    assert.equal((await ask(sandbox, '/api/pdf/1.json')).status, 404)
    assert.equal((await ask(sandbox, `/api/pdf/${of('settled')}.json`, 'guessed')).status, 401)
  })
})

describe('faults of the sandbox’s InvoiceXpress', () => {
  const shared = share()

  type Ask = (query?: string) => Promise<Response>
  /** What each does to a list of documents. */
  const effects: Record<
    DocumentFault,
    (ask: Ask, sandbox: InvoiceXpressSandbox, t: TestContext) => Promise<unknown>
  > = {
    ...faultEffects,
    async too_many(ask) {
      const answer = await ask()
      assert.deepEqual([answer.status, answer.headers.get('retry-after')], [429, null])
      assert.deepEqual(Object.keys((await answer.json()) as object), ['errors'])
    },
    huge: async (_, sandbox) =>
      assert.ok((await countBytes(`${sandbox.address}/invoices.json?api_key=${key}`)) > 50_000_000),
    async wrong_type(ask) {
      const first = (await (await ask()).json()) as { invoices: object }
      assert.equal(Array.isArray(first.invoices), false)
      const second = (await (await ask()).json()) as { invoices: Record<string, unknown>[] }
      assert.deepEqual(
        [typeof second.invoices[0]?.total, typeof second.invoices[0]?.id],
        ['string', 'string'],
      )
    },
    async missing_id(ask) {
      const { invoices } = (await (await ask()).json()) as { invoices: Record<string, unknown>[] }
      assert.deepEqual(
        [invoices.length, invoices[0]?.id, typeof invoices[0]?.type],
        [10, undefined, 'string'],
      )
    },
    async looping_page(ask) {
      for (let page = 1; page < 25; page++) {
        const json = (await (await ask(`&page=${page}`)).json()) as {
          invoices: { id: number }[]
          pagination: { current_page: number; total_pages: number }
        }
        assert.equal(json.pagination.current_page, 1)
        assert.ok(json.pagination.total_pages > page)
        assert.equal(json.invoices.length, 10)
      }
    },
    gateway_404: async ask => assert.match(await (await ask()).text(), /^<html>.*404/),
    async error_in_200(ask) {
      const answer = await ask()
      assert.equal(answer.status, 200)
      assert.deepEqual(Object.keys((await answer.json()) as object), ['errors'])
    },
    unauthorized: async ask => assert.equal((await ask()).status, 401),
    async never_ready(ask) {
      for (let turn = 0; turn < 3; turn++) assert.equal((await ask()).status, 202)
    },
    not_found: async ask => assert.equal((await ask()).status, 404),
    async repeating_pages(ask) {
      const pages = await Promise.all([1, 2, 3, 4].map(page => readIds(ask, page)))
      assert.deepEqual([pages[2], pages[3]], [pages[0], pages[1]])
      assert.notDeepEqual(pages[0], pages[1])
    },
    async endless_pages(ask) {
      const pages = await Promise.all(Array.from({ length: 8 }, (_, index) => readIds(ask, index + 1)))
      assert.equal(new Set(pages.flat()).size, 80)
    },
  }
  /** Of a page that says it is the one asked for, and not the last. */
  async function readIds(ask: Ask, page: number): Promise<number[]> {
    const { invoices, pagination } = (await (await ask(`&page=${page}`)).json()) as {
      invoices: { id: number }[]
      pagination: { current_page: number; total_pages: number }
    }
    assert.equal(pagination.current_page, page)
    assert.ok(pagination.total_pages > page)
    return invoices.map(({ id }) => id)
  }
  for (const fault of documentFaultNames)
    it(`include ${fault}, which has its described effect and ends when it is cleared`, async t => {
      const { sandbox } = shared()
      sandbox.faults.set('ix_list', fault)
      const timeout = fault === 'hang' ? 400 : 60_000
      const url = `${sandbox.address}/invoices.json?api_key=${key}`
      await effects[fault](
        (query = '') => fetch(url + query, { redirect: 'manual', signal: AbortSignal.timeout(timeout) }),
        sandbox,
        t,
      )
      assert.equal((await ask(sandbox, '/clients/1.json')).status, 404)
      sandbox.faults.clear()
      assert.equal((await ask(sandbox, '/invoices.json')).json.invoices.length, 10)
    })

  it('apply to any route for a given number of times, and a route’s own fault comes first', async t => {
    const { sandbox } = await start(t, { pdfDelay: 0 })
    const [one = assert.fail()] = await listAll(sandbox, 'type[]=Invoice&status[]=settled')
    const { json } = await ask(sandbox, `/api/pdf/${one.id}.json`)
    const saft = await ask(sandbox, '/api/export_saft.json?year=2026&month=10')
    const paths: Record<DocumentRouteName, string> = {
      ix_list: '/invoices.json',
      ix_document: pathOf(one),
      ix_client: `/clients/${one.client.id}.json`,
      ix_pdf: `/api/pdf/${one.id}.json`,
      ix_pdf_file: new URL(json.output.pdfUrl).pathname,
      ix_related: `/document/${one.id}/related_documents.json`,
      ix_qr: `/api/qr_codes/${one.id}.json`,
      ix_qr_file: new URL((await ask(sandbox, `/api/qr_codes/${one.id}.json`)).json.qr_code.url).pathname,
      ix_saft: '/api/export_saft.json',
      ix_saft_file: new URL(saft.json.url).pathname,
    }
    assert.deepEqual(Object.keys(paths).sort(), documentRouteNames.toSorted())
    sandbox.requests.clear()
    const statusOf = async (path: string) => {
      const answer = await fetch(`${sandbox.address}${path}?api_key=${key}&year=2026&month=10`)
      await answer.arrayBuffer()
      return answer.status
    }
    for (const [route, path] of Object.entries(paths) as [DocumentRouteName, string][]) {
      sandbox.faults.set(route, 'error_500', { times: 2 })
      sandbox.faults.set('*', 'error_503', { times: 1 })
      const statuses: number[] = []
      for (let turn = 0; turn < 4; turn++) statuses.push(await statusOf(path))
      assert.deepEqual(statuses, [500, 500, 503, 200], route)
      assert.equal(sandbox.requests.get(route), 4)
    }
    sandbox.faults.set('*', 'missing_id')
    const document = (await ask(sandbox, paths.ix_document)).json.invoice
    assert.deepEqual([document.id, document.type], [undefined, 'Invoice'])
    assert.equal((await ask(sandbox, paths.ix_client)).json.client.id, undefined)
    assert.deepEqual((await ask(sandbox, paths.ix_pdf)).json, { output: {} })
    sandbox.faults.set('*', 'wrong_type')
    assert.equal(typeof (await ask(sandbox, paths.ix_document)).json.invoice.total, 'string')
    assert.ok(Array.isArray((await ask(sandbox, paths.ix_pdf)).json.output))
    for (const fault of ['garbled', 'wrong_type', 'missing_id'] as const) {
      sandbox.faults.set('ix_pdf_file', fault)
      const answer = await fetch(`${sandbox.address}${paths.ix_pdf_file}`)
      assert.doesNotMatch(await answer.text(), /^%PDF-/)
    }
  })

  it('hit a random share of the requests, the same at each run, also at Stripe', async t => {
    const outcomes = async (address: string, path: string, headers: Record<string, string>) => {
      const seen: string[] = []
      for (let turn = 0; turn < 40; turn++)
        seen.push(
          await fetch(address + path, { headers }).then(
            async answer => `${answer.status} ${(await answer.text().catch(() => 'cut')).length}`,
            () => 'reset',
          ),
        )
      return seen
    }
    const list = `/invoices.json?api_key=${key}`
    const runs: string[][] = []
    for (let run = 0; run < 2; run++) {
      const { sandbox } = await start(t, { chaos: 0.5 })
      runs.push(await outcomes(sandbox.address, list, {}))
    }
    const [first = [], second] = runs
    assert.deepEqual(first, second)
    const { sandbox } = await start(t)
    const [right] = await outcomes(sandbox.address, list, {})
    const spoilt = first.filter(outcome => outcome !== right)
    assert.ok(spoilt.length > 10 && spoilt.length < 30, `${spoilt.length} of 40`)
    assert.ok(new Set(spoilt).size > 4, spoilt.join())
    const stripe = await startStripeSandbox({ chaos: 1 })
    t.after(() => stripe.close())
    const seen = await outcomes(stripe.address, '/v1/invoices', { authorization: 'Bearer sk_test_sandbox' })
    assert.ok(new Set(seen).size > 4, seen.join())
    stripe.faults.clear()
    const answer = await fetch(`${stripe.address}/v1/account`, {
      headers: { authorization: 'Bearer sk_test_sandbox' },
    })
    assert.equal(answer.status, 200)
  })
})

describe('the controls of the sandbox’s InvoiceXpress', () => {
  it('set faults and random faults, and change, follow, plant and clear documents', async t => {
    const { sandbox, account, documents } = await start(t)
    await post(sandbox, 'faults?route=ix_list&fault=too_many&times=1&retry_after=7')
    const refused = await ask(sandbox, '/invoices.json')
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '7'])
    assert.deepEqual((await post(sandbox, 'chaos?share=1')).json, { share: 1 })
    await post(sandbox, 'clear')
    assert.equal((await ask(sandbox, '/invoices.json')).status, 200)
    const invoice = account.change('finalize')
    assert.equal((await post(sandbox, 'follow')).json.changed, 1)
    const id = Number(account.invoices.get(invoice)?.metadata.ix_id)
    const settled = await post(sandbox, `change?kind=settle&invoice=${invoice}`)
    assert.deepEqual(settled.json, { kind: 'settle', document: id, status: 'settled' })
    await post(sandbox, `change?kind=refer&document=${id}&reference=x`)
    assert.equal(documents.documents.get(id)?.reference, 'x')
    const planted = await post(sandbox, 'plant?kind=total')
    assert.deepEqual(planted.json, documents.planted[0])
    for (const wrong of [
      'nothing',
      'faults?route=list_invoices&fault=hang',
      'faults?route=*&fault=x',
      'chaos?share=2',
      'change?kind=x',
      'change?kind=settle&document=1',
      `change?kind=settle&document=${id}`,
      'plant?kind=total&invoice=in_none',
    ])
      assert.ok([400, 404].includes((await post(sandbox, wrong)).status), wrong)
  })
})

describe('additional routes of the sandbox’s Stripe', () => {
  const headers = { authorization: 'Bearer rk_test_sandbox' }

  it('list tax rates, and the webhook endpoint once it has a subscriber', async t => {
    const sandbox = await startStripeSandbox()
    t.after(() => sandbox.close())
    const list = async (path: string) => {
      const answer = await fetch(`${sandbox.address}/v1/${path}`, { headers })
      return (await answer.json()) as { has_more: boolean; data: Record<string, unknown>[] }
    }
    const rates = await list('tax_rates?limit=100')
    assert.deepEqual(rates.data.map(({ id }) => id).sort(), [...sandbox.account.taxRates.keys()].sort())
    assert.equal((await list('tax_rates?limit=2')).has_more, true)
    assert.deepEqual((await list('webhook_endpoints')).data, [])
    sandbox.subscribe('http://127.0.0.1:4011/', 'whsec_x')
    const [endpoint = assert.fail(), ...others] = (await list('webhook_endpoints')).data
    assert.equal(others.length, 0)
    const { url, status, enabled_events, api_version } = endpoint
    assert.deepEqual([url, status, enabled_events], ['http://127.0.0.1:4011/', 'enabled', ['*']])
    assert.match(String(api_version), /^\d{4}-\d\d-\d\d/)
    assert.equal(JSON.stringify(endpoint).includes('whsec'), false)
  })

  it('answer 403 exactly where the key lacks a permission', async t => {
    const sandbox = await startStripeSandbox({ forbidden: ['webhook_endpoints'] })
    t.after(() => sandbox.close())
    const { account } = sandbox
    const [invoice] = account.invoices.keys()
    const [customer] = account.customers.keys()
    const [rate] = account.taxRates.keys()
    const paths: Record<string, string[]> = {
      invoices: ['invoices', `invoices/${invoice}`, `invoices/${invoice}/lines`],
      customers: ['customers', `customers/${customer}`],
      events: ['events'],
      tax_rates: ['tax_rates', `tax_rates/${rate}`],
      webhook_endpoints: ['webhook_endpoints'],
      account: ['account'],
    }
    const statusOf = async (path: string) => {
      const answer = await fetch(`${sandbox.address}/v1/${path}`, { headers })
      const { error } = (await answer.json()) as { error?: { type: string; message: string } }
      if (answer.status === 403) {
        assert.equal(error?.type, 'invalid_request_error')
        assert.match(error?.message ?? '', /'rk_test_\*+' does not have the required permissions/)
      }
      return answer.status
    }
    assert.equal(await statusOf('webhook_endpoints'), 403)
    await post(sandbox, 'permit')
    for (const permission of Object.keys(paths)) {
      assert.equal((await post(sandbox, `forbid?permission=${permission}`)).status, 200)
      for (const [other, each] of Object.entries(paths))
        for (const path of each) assert.equal(await statusOf(path), other === permission ? 403 : 200, path)
      await post(sandbox, `permit?permission=${permission}`)
    }
    assert.equal((await post(sandbox, 'forbid?permission=charges')).status, 400)
  })
})

describe('docs/sandbox.md', () => {
  it('names every route, fault, kind of change, difference, permission and control', async () => {
    const page = await readFile(new URL('../../docs/sandbox.md', import.meta.url), 'utf8')
    const named = [
      ...[...routeNames, ...documentRouteNames, ...documentFaultNames],
      ...[...documentChangeKinds, ...differenceKinds, ...permissions],
    ]
    for (const name of named) assert.ok(page.includes(`\`${name}\``), name)
    for (const name of Object.keys({ ...stripeControls, ...ixControls }))
      assert.ok(page.includes(`\`${name}\``) || page.includes(`/_sandbox/${name}`), name)
    const faults = [...page.matchAll(/^\| `(\w+)` \| .*$/gm)].map(([, name = '']) => name)
    const last = documentFaultNames.at(-1) ?? ''
    assert.deepEqual(faults.slice(faults.indexOf('hang'), faults.indexOf(last) + 1), [...documentFaultNames])
  })
})

describe('fatura sandbox with both systems', () => {
  it('serves both, explains their use, and stops both at a signal', async t => {
    const cli = await createCli(t)
    const program = cli.start(['sandbox', '--port=0', '--seed=5', '--invoices=60', '--differences=7'])
    const [, stripe = ''] = await program.waitFor(/STRIPE_API_BASE=(\S+) STRIPE_API_KEY=sk_test_sandbox\n/)
    const [, address = '', apiKey = ''] = await program.waitFor(
      /INVOICEXPRESS_API_BASE=(\S+) INVOICEXPRESS_API_KEY=(\S+) INVOICEXPRESS_ACCOUNT=sandbox\n/,
    )
    await program.waitFor(/Ctrl-C/)
    const account = createAccount({ seed: 5, invoices: 60 })
    const documents = createDocuments(account, { seed: 5, differences: 7 })
    const { json } = await ask({ address }, '/invoices.json?per_page=50', apiKey)
    const listed = newestFirst(documents.documents.values()).filter(({ archived }) => !archived)
    assert.deepEqual(plainList(json.invoices), listed.slice(0, 50).map(plainly))
    assert.equal((await ask({ address }, '/invoices.json', 'ix_test_wrong')).status, 401)
    const wrong = { headers: { authorization: 'Bearer sk_test_wrong' } }
    assert.equal((await fetch(`${stripe}/v1/invoices`, wrong)).status, 401)
    account.advance(172_800)
    await post({ address: stripe }, 'advance?seconds=172800')
    assert.deepEqual((await post({ address }, 'follow')).json, { changed: documents.follow() })
    // Ctrl-C; test/sandbox/stripe.test.ts stops it by SIGTERM.
    const { code, stderr } = await program.stop('SIGINT')
    assert.deepEqual([code, stderr], [0, ''])
    for (const base of [stripe, address]) assert.ok(await isRefused(Number(new URL(base).port)))
  })

  it('reports a port in use or too few invoices in one line', async t => {
    const cli = await createCli(t)
    const { sandbox } = await start(t)
    const { port } = new URL(sandbox.address)
    const second = ['sandbox', '--port', '0', '--invoicexpress-port']
    assertOneLine(await cli.run([...second, port]), /--invoicexpress-port/)
    const few = ['sandbox', '--port=0', '--invoices=2', '--differences=50']
    assertOneLine(await cli.run(few), /--differences is too high/)
  })
})
