/** `fatura reconcile`: exactly the differences that are there, on every engine; and what it says when it cannot tell. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { createTimeZone, readScope } from '../../../src/cli/commands/reconcile-scope.ts'
import type { Setting } from '../../../src/cli/settings/settings.ts'
import { CliError } from '../../../src/cli/terminal/cli-error.ts'
import { type Claim, type Document, noClaim } from '../../../src/domain/document.ts'
import { currencyOf } from '../../../src/domain/document-json.ts'
import type { Invoice } from '../../../src/domain/invoice.ts'
import { defaultRules, isSameTaxId } from '../../../src/domain/link/link.ts'
import { decimalsOf, writeAmount } from '../../../src/domain/money.ts'
import { completePaymentFacts } from '../../../src/domain/payment.ts'
import { isSameAmount } from '../../../src/operations/reconcile/compare-amounts.ts'
import type { DifferenceKind } from '../../../src/operations/reconcile/difference-kinds.ts'
import { readChecked } from '../../../src/operations/reconcile/read-pairs.ts'
import { findDifferences } from '../../../src/operations/reconcile/reconcile.ts'
import { stripeIdentity } from '../../../src/sources/stripe/source-identity.ts'
import type { LinkedInvoice } from '../../../src/store/document-store.ts'
import { openOperatorStore } from '../../../src/store/engines.ts'
import { observationStamp, type WriteStore } from '../../../src/store/store.ts'
import { relinkInvoices } from '../../../src/sync/link-invoices.ts'
import { assertFits, createCli, type Outcome, unwrapped } from '../../support/clients/cli.ts'
import { type Engine, engines } from '../../support/databases/engines.ts'
import { linkedStore, observe } from '../../support/worlds/linked-store.ts'
import { templates } from '../../support/worlds/linking.ts'
import { noGuard } from '../../support/worlds/no-guard.ts'
import { makeInvoice } from '../../support/worlds/records.ts'
import { refusalOf } from '../../support/worlds/settings.ts'
import { openStores } from '../../support/worlds/sync.ts'

interface Planted {
  invoice: Partial<Invoice> & { id: string }
  /** Null: imported. */
  claim?: Partial<Claim> | null
  /** Refers to the invoice unless told otherwise. */
  document?: Partial<Document> & { id: number }
  /** More that refer to the invoice. */
  others?: (Partial<Document> & { id: number })[]
  misses?: number
  /** Tax id of the document's client; undefined: not read. */
  taxId?: string | null
}

const now = Date.now()
const ago = (milliseconds: number) => new Date(now - milliseconds).toISOString()
const hour = 3_600_000

function makeDocument(reference: string, fields: Partial<Document> & { id: number }): Document {
  return {
    type: 'Invoice',
    status: 'settled',
    reference,
    number: '6/G',
    date: '2026-03-02',
    total: '123.0',
    currency: 'Euro',
    client_id: fields.id,
    ...fields,
  }
}

/** As the connector would: invoices, documents, what ties them, and what was missed. */
async function plant(store: WriteStore, planted: readonly Planted[]): Promise<void> {
  let stamp = observationStamp(now - hour)
  await store.transaction(async tx => {
    const records = planted.map(({ invoice, claim = {} }) => ({
      invoice: makeInvoice(invoice),
      lines: null,
      ...(claim !== null && { claim: { ...noClaim, ...claim } }),
    }))
    await tx.saveInvoices(records, stamp++)
    for (const { invoice, document, others = [], misses = 0, taxId } of planted) {
      if (document === undefined) continue
      await tx.saveDocuments([makeDocument(invoice.id, document)], stamp++)
      for (let miss = 0; miss < misses; miss++) await tx.missDocument(document.id, stamp++)
      if (taxId !== undefined) await tx.saveClient(document.id, taxId, stamp++)
      await tx.saveDocuments(
        others.map(other => makeDocument(invoice.id, other)),
        stamp++,
      )
    }
    const invoices = planted.map(({ invoice }) => invoice.id)
    await relinkInvoices(tx, { documents: [], invoices }, 'test', {
      rules: defaultRules,
      guard: noGuard,
      now: Date.now(),
    })
  })
}

async function succeed(store: WriteStore, names = ['ix:all', 'ix:open'], at = now): Promise<void> {
  for (const name of names)
    await store.transaction(tx =>
      tx.saveStream({ name, cursor: null, succeeded_at: at, failed_at: null, error: null }),
    )
}

interface World {
  store: WriteStore
  run(...args: string[]): Promise<Outcome>
  find(...args: string[]): Promise<[id: string, kind: string, detail: string][]>
  /** The invoices in the scope of these options, within this process, which is faster than a start of the program. */
  look(options: Record<string, string>): Promise<string>
}

async function createWorld(t: TestContext, engine: Engine, env: Record<string, string> = {}): Promise<World> {
  const { store, url } = await openStores(t, engine)
  const cli = await createCli(t)
  const run = (...args: string[]) => cli.run(['reconcile', ...args], { env: { DATABASE_URL: url, ...env } })
  return {
    store,
    run,
    async find(...args) {
      const { code, stdout, stderr } = await run('--format', 'json', ...args)
      const found = stdout
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line))
      assert.equal(code, found.length === 0 ? 0 : 1, stderr)
      return found.map(({ invoice_id, kind, detail }) => [invoice_id, kind, detail])
    },
    async look(options) {
      const operator = await openOperatorStore(url)
      const looked = await Array.fromAsync(readChecked(operator, readScope(options), defaultRules))
      await operator.close()
      return looked.map(({ linked }) => linked.id).join(' ')
    },
  }
}

const taxId = '123456789'

const inDollars = (total: string) => ({ multicurrency: { rate: '1.087', currency: 'usd', total } })

/** Every kind, and beside each what is nearly one. */
const world: readonly Planted[] = [
  { invoice: { id: 'in_a01' }, document: { id: 1, status: 'settled' }, taxId },
  { invoice: { id: 'in_b01' } },
  { invoice: { id: 'in_b02' }, document: { id: 2, status: 'canceled', total: '1' } },
  { invoice: { id: 'in_b03' }, document: { id: 3, status: 'draft' } },
  { invoice: { id: 'in_b04' }, claim: { state: 'synced', ix_id: 404 } },
  { invoice: { id: 'in_b05' }, claim: { state: 'ignored' } },
  { invoice: { id: 'in_b06' }, claim: { state: 'creating', attempted_at: ago(hour / 2) } },
  { invoice: { id: 'in_b07', status: 'open' } },
  { invoice: { id: 'in_b08', status: 'open' }, document: { id: 8, status: 'draft' } },
  { invoice: { id: 'in_b09' }, claim: null },
  { invoice: { id: 'in_b10', ix_sync_state: 'synced', ix_id: 9_999, ix_status: 'settled' }, claim: null },
  { invoice: { id: 'in_b11' }, document: { id: 11, reference: 'in_b1' } },
  { invoice: { id: 'in_c01', status: 'void' }, document: { id: 21, status: 'final' } },
  { invoice: { id: 'in_c02', status: 'void' }, document: { id: 22, status: 'canceled' } },
  { invoice: { id: 'in_c03', status: 'void' }, document: { id: 23, status: 'deleted' } },
  { invoice: { id: 'in_c04', status: 'void' } },
  { invoice: { id: 'in_c05', status: 'uncollectible' }, document: { id: 25 } },
  { invoice: { id: 'in_d01' }, document: { id: 31, total: '123.02' } },
  { invoice: { id: 'in_d09' }, document: { id: 39, total: '123.01' } },
  { invoice: { id: 'in_d02' }, document: { id: 32, total: '123.009' } },
  { invoice: { id: 'in_d03' }, document: { id: 33, currency: 'US Dollar' } },
  { invoice: { id: 'in_d04' }, document: { id: 34, currency: 'Galleon' } },
  { invoice: { id: 'in_d05', currency: 'jpy' }, document: { id: 35, currency: 'Yen', total: '12300' } },
  { invoice: { id: 'in_d06', currency: 'jpy' }, document: { id: 36, currency: 'Yen', total: '123.00' } },
  { invoice: { id: 'in_d07', currency: 'kwd' }, document: { id: 37, currency: null, total: '12.3' } },
  { invoice: { id: 'in_d08' }, document: { id: 38, total: '12,3' } },
  // The account's currency is the euro, whatever the invoice's is.
  {
    invoice: { id: 'in_d10', currency: 'usd' },
    document: { id: 310, total: '113.16', ...inDollars('123.00') },
  },
  {
    invoice: { id: 'in_d11', currency: 'usd' },
    document: { id: 311, total: '113.16', ...inDollars('123.02') },
  },
  { invoice: { id: 'in_d12', currency: 'usd' }, document: { id: 312, total: '113.16' } },
  { invoice: { id: 'in_d13', currency: 'usd' }, document: { id: 313, total: '113.16', multicurrency: null } },
  {
    invoice: { id: 'in_d14', currency: 'gbp' },
    document: { id: 314, total: '113.16', ...inDollars('123.00') },
  },
  { invoice: { id: 'in_d15' }, document: { id: 315, ...inDollars('133.70') } },
  { invoice: { id: 'in_d16', currency: 'usd' }, document: { id: 316, currency: null, total: '113.16' } },
  {
    invoice: { id: 'in_d17', currency: 'jpy' },
    document: {
      id: 317,
      total: '75.04',
      multicurrency: { rate: '163.9', currency: 'jpy', total: '12300' },
    },
  },
  // Tax that the client withholds.
  {
    invoice: { id: 'in_d20' },
    document: { id: 320, total: '98', before_taxes: '100', taxes_total: '23', retention: '25' },
  },
  {
    invoice: { id: 'in_d21' },
    document: { id: 321, total: '98.02', before_taxes: '100', taxes_total: '23.02', retention: '25' },
  },
  { invoice: { id: 'in_d22' }, document: { id: 322, total: '98', retention: '25' } },
  {
    invoice: { id: 'in_d23', currency: 'usd' },
    document: {
      id: 323,
      total: '90.16',
      before_taxes: '92',
      taxes_total: '21.16',
      retention: '25',
      ...inDollars('98'),
    },
  },
  {
    invoice: { id: 'in_d24' },
    document: { id: 324, total: '123', before_taxes: '100', taxes_total: '24' },
  },
  { invoice: { id: 'in_e01' }, claim: { state: 'creating', attempted_at: ago(2 * hour) } },
  { invoice: { id: 'in_e02' }, claim: { state: 'creating' } },
  { invoice: { id: 'in_e03', issued_at: ago(60_000) }, claim: { state: 'creating' } },
  {
    invoice: { id: 'in_e04' },
    claim: { state: 'creating', attempted_at: ago(2 * hour) },
    document: { id: 44, status: 'settled' },
  },
  { invoice: { id: 'in_f01' }, claim: { state: 'failed', error: 'Client is\ninvalid' } },
  { invoice: { id: 'in_f02' }, claim: { state: 'failed' } },
  {
    invoice: { id: 'in_f03' },
    claim: { state: 'synced', ix_id: 53 },
    document: { id: 53, reference: null },
    misses: 2,
  },
  {
    invoice: { id: 'in_f04' },
    claim: { state: 'synced', ix_id: 54 },
    document: { id: 54, reference: null },
    misses: 1,
  },
  { invoice: { id: 'in_f05' }, claim: { state: 'failed' }, document: { id: 55 } },
  { invoice: { id: 'in_f06', ix_sync_state: 'failed', ix_id: 56 }, claim: null },
  { invoice: { id: 'in_g01' }, document: { id: 61 }, taxId: '987654321' },
  { invoice: { id: 'in_g02' }, document: { id: 62 }, taxId: null },
  { invoice: { id: 'in_g03' }, document: { id: 63 }, taxId: 'pt 123.456-789' },
  { invoice: { id: 'in_g04' }, document: { id: 64 } },
  { invoice: { id: 'in_g05', customer_tax_id: null }, document: { id: 65 }, taxId: '987654321' },
  { invoice: { id: 'in_g06' }, document: { id: 66, total: '1' }, taxId: 'ES123456789' },
  { invoice: { id: 'in_h01' }, document: { id: 71, status: 'final' } },
  { invoice: { id: 'in_h02' }, document: { id: 72, status: 'sent' } },
  { invoice: { id: 'in_h03', status: 'open' }, document: { id: 73, status: 'final' } },
  // Of a second copy alone, nobody knows whether its original is in force.
  { invoice: { id: 'in_h04' }, document: { id: 74, status: 'second_copy' } },
  {
    invoice: { id: 'in_h05' },
    document: { id: 75, status: 'second_copy', series_number: 'G/75' },
    others: [{ id: 76, series_number: 'G/75' }],
  },
  {
    invoice: { id: 'in_h06' },
    claim: { state: 'synced', ix_id: 77 },
    document: { id: 77, status: 'second_copy', series_number: 'G/77' },
    others: [{ id: 78, status: 'final', series_number: 'G/77' }],
  },
  {
    invoice: { id: 'in_h07' },
    document: { id: 79, status: 'second_copy', series_number: 'G/79', total: '1' },
    others: [{ id: 80, status: 'canceled', series_number: 'G/79' }],
  },
  { invoice: { id: 'in_h08', status: 'void' }, document: { id: 701, status: 'second_copy' } },
  { invoice: { id: 'in_i01' }, document: { id: 81 }, others: [{ id: 82, status: 'final' }] },
  { invoice: { id: 'in_i02' }, document: { id: 83 }, others: [{ id: 84, status: 'canceled' }] },
  { invoice: { id: 'in_i03' }, document: { id: 85 }, others: [{ id: 86, status: 'draft' }] },
  {
    invoice: { id: 'in_i04' },
    claim: { state: 'synced', ix_id: 87 },
    document: { id: 87, reference: 'Order 4' },
    others: [{ id: 88 }],
  },
  { invoice: { id: 'in_i05' }, document: { id: 89 }, misses: 2, others: [{ id: 90 }] },
  { invoice: { id: 'in_i06', status: 'void' }, document: { id: 91 }, others: [{ id: 92 }, { id: 93 }] },
]

const expected: readonly [id: string, kind: DifferenceKind, detail: RegExp][] = [
  ['in_b01', 'paid_without_document', /there is no document/],
  ['in_b02', 'paid_without_document', /document 2 is canceled/],
  ['in_b03', 'paid_without_document', /document 3 is a draft/],
  ['in_b04', 'paid_without_document', /document 404 is recorded, but was never seen/],
  ['in_b07', 'open_without_document', /^open, and there is no document$/],
  ['in_b08', 'open_without_document', /^open, but document 8 is a draft$/],
  ['in_b09', 'paid_without_document', /there is no document/],
  ['in_b11', 'paid_without_document', /there is no document/],
  ['in_c01', 'document_on_void', /void, but document 21 is final/],
  ['in_d01', 'total_differs', /^123\.00 eur at Stripe, 123\.02 Euro on the document$/],
  [
    'in_d03',
    'currency_unknown',
    /^123\.00 eur at Stripe, 123\.0 US Dollar on the document, which has no total in eur as far as it was read$/,
  ],
  ['in_d06', 'total_differs', /^12300 jpy at Stripe, 123\.00 Yen on the document$/],
  ['in_d08', 'total_differs', /12,3 Euro on the document: the latter cannot be read/],
  ['in_d11', 'total_differs', /^123\.00 usd at Stripe, 123\.02 usd \(113\.16 Euro\) on the document$/],
  [
    'in_d12',
    'currency_unknown',
    /^123\.00 usd at Stripe, 113\.16 Euro on the document, which has no total in usd as far as it was read$/,
  ],
  ['in_d13', 'currency_unknown', /113\.16 Euro on the document, which has no total in usd$/],
  ['in_d14', 'total_differs', /^123\.00 gbp at Stripe, 123\.00 usd .* on the document: another currency$/],
  ['in_d16', 'currency_unknown', /^123\.00 usd at Stripe, 113\.16 on the document/],
  [
    'in_d21',
    'total_differs',
    /^123\.00 eur at Stripe, 123\.02 Euro \(98\.02 after retention\) on the document$/,
  ],
  ['in_d24', 'total_differs', /^123\.00 eur at Stripe, 124 Euro \(its total is 123\) on the document$/],
  ['in_e01', 'stuck_creating', new RegExp(`since ${ago(2 * hour)}`)],
  ['in_e02', 'stuck_creating', /creating since an unknown time; issued 2026-03-02/],
  ['in_f01', 'failed', /^Client is\ninvalid$/],
  ['in_f02', 'failed', /no reason is recorded/],
  ['in_f03', 'failed', /document 53 is recorded, but the invoicing system no longer has it/],
  ['in_f06', 'failed', /no reason is recorded/],
  ['in_g01', 'tax_id_differs', /^PT123456789 at Stripe, 987654321 of the client of document \d+ of [\d-]+$/],
  ['in_g02', 'tax_id_one_side', /PT123456789 at Stripe, none of/],
  ['in_g05', 'tax_id_one_side', /^none at Stripe, 987654321 of/],
  ['in_g06', 'total_differs', /1 Euro/],
  ['in_g06', 'tax_id_differs', /ES123456789/],
  ['in_h01', 'paid_not_settled', /^paid, but document 71 is final, and not settled$/],
  ['in_h02', 'paid_not_settled', /document 72 is sent/],
  [
    'in_h04',
    'paid_without_document',
    /^paid, but document 74 is a second copy, and its original is not known$/,
  ],
  ['in_h06', 'paid_not_settled', /^paid, but document 77 is final, and not settled$/],
  ['in_h07', 'paid_without_document', /^paid, but document 80 is canceled$/],
  ['in_i01', 'several_documents', /^documents 81 \(settled\) and 82 \(final\) are all in force$/],
  ['in_i04', 'several_documents', /^documents 87 \(settled\) and 88 \(settled\) are all in force$/],
  ['in_i06', 'several_documents', /^documents 91 .* and 92 .* and 93 /],
  ['in_i06', 'document_on_void', /document 91 is settled/],
]

for (const engine of engines)
  describe(`fatura reconcile on ${engine.name}`, { concurrency: 2 }, () => {
    it('finds exactly the planted differences of every kind, and none in similar correct pairs', async t => {
      const { store, run, find } = await createWorld(t, engine)
      await plant(store, world)
      await succeed(store)
      const found = await find()
      assert.deepEqual(
        found.map(([id, kind]) => [id, kind]),
        expected.map(([id, kind]) => [id, kind]),
      )
      for (const [index, [id, , detail]] of expected.entries())
        assert.match(found[index]?.[2] ?? '', detail, id)

      const { code, stdout: shown, stderr } = await run()
      assert.equal(code, 1)
      assertFits(shown + stderr)
      const stdout = unwrapped(shown)
      const lines = stdout.trimEnd().split('\n')
      assert.match(lines[0] ?? '', /^KIND +CUSTOMER +INVOICE +NUMBER +ISSUED +DETAIL$/)
      assert.equal(lines.length, expected.length + 1)
      assert.match(stdout, /^failed +cus_ana +in_f01 +2026-\d+ +2026-03-02 +Client is invalid$/m)
      assert.equal(
        stderr.replace(/(?<!\.)\n/g, ' '),
        `40 differences in ${world.length} invoices checked: 8 paid_without_document, 2 open_without_document, 3 paid_not_settled, 3 several_documents, 2 document_on_void, 8 total_differs, 4 currency_unknown, 2 stuck_creating, 4 failed, 2 tax_id_differs, 2 tax_id_one_side.\nAlso, 1 document in force is tied to no invoice: --unlinked lists it.\nAlso, 1 is rounding of at most 1 cent a rate: --all lists it.\n`,
      )
    })

    it('counts roundings, lists them with --all, exits with 0, and obeys --tolerance', async t => {
      const { store, run } = await createWorld(t, engine)
      await plant(store, [
        { invoice: { id: 'in_1' }, document: { id: 1, total: '123.01' } },
        { invoice: { id: 'in_2' }, document: { id: 2, total: '122.97' } },
        { invoice: { id: 'in_3' }, document: { id: 3, before_taxes: '99.99', taxes_total: '23.01' } },
      ])
      await succeed(store)
      const list = async (...args: string[]) => {
        const { code, stdout, stderr } = await run('--format', 'json', ...args)
        const rows = stdout.split('\n').filter(Boolean)
        return [code, rows.map(row => JSON.parse(row)).map(row => `${row.invoice_id} ${row.kind}`), stderr]
      }
      const [code, usual, stderr] = await list()
      assert.deepEqual([code, usual], [1, ['in_2 total_differs']])
      assert.match(String(stderr), /Also, 2 are rounding of at most 1 cent a rate: --all lists them\.\n$/)
      assert.deepEqual((await list('--tolerance', '3', '--all')).slice(0, 2), [
        0,
        ['in_1 rounding', 'in_2 rounding', 'in_3 rounding'],
      ])
      assert.deepEqual((await list('--tolerance', '0')).slice(0, 2), [
        1,
        ['in_1 total_differs', 'in_2 total_differs', 'in_3 tax_differs'],
      ])
    })

    it('lists documents without an invoice on request, and only those in force', async t => {
      const { store, run, find } = await createWorld(t, engine)
      await plant(store, [
        { invoice: { id: 'in_1' }, document: { id: 1 }, taxId },
        {
          invoice: { id: 'in_2' },
          claim: { state: 'synced', ix_id: 2 },
          document: { id: 2, reference: 'Order 2' },
        },
      ])
      const loose: (Partial<Document> & { id: number })[] = [
        { id: 10, reference: 'in_unknown', date: '2026-03-01' },
        { id: 11, reference: 'in_unknown', status: 'draft' },
        { id: 12, reference: 'in_unknown', status: 'canceled' },
        { id: 13, reference: null, status: 'final', date: '2026-04-01' },
        { id: 14, reference: 'Order 14', date: null },
        { id: 15, reference: 'in_gone' },
        { id: 16, reference: null, status: 'deleted' },
      ]
      await store.transaction(async tx => {
        const stamp = observationStamp(now)
        await tx.saveDocuments(
          loose.map(document => makeDocument('', document)),
          stamp,
        )
        for (let miss = 1; miss <= 2; miss++) await tx.missDocument(15, stamp + miss)
      })
      await succeed(store)
      const quiet = await run()
      assert.deepEqual([quiet.code, quiet.stdout], [0, ''])
      assert.match(quiet.stderr, /^No differences in 2 invoices checked\.\nAlso, 3 documents in force are/)
      assert.deepEqual(await find('--unlinked'), [
        [
          'in_unknown',
          'document_of_unknown_invoice',
          'document 10 of 2026-03-01 is settled, and refers to in_unknown, which is not in the store',
        ],
        [null, 'document_without_invoice', 'document 13 of 2026-04-01 is final, and refers to nothing'],
        [
          null,
          'document_without_invoice',
          "document 14 of an unknown day is settled, and refers to 'Order 14'",
        ],
      ])
      assert.deepEqual((await find('--unlinked', '--month', '2026-04')).length, 1)
      assert.deepEqual(await find('--unlinked', '--customer', 'cus_ana'), [], 'whose they are cannot be told')
    })

    it('says why a document that names a paid invoice is not linked to it', async t => {
      const { store, find } = await createWorld(t, engine, { DOCUMENT_REFERENCE: 'Stripe {id},{payment}' })
      const { apply, save } = linkedStore(store, {
        ...defaultRules,
        ...templates('Stripe {id}', '{payment}'),
      })
      const paid = { status: 'paid', customer_id: 'cus_a' } as const
      await apply(
        observe({ ...paid, id: 'in_a' }),
        observe({ ...paid, id: 'in_b' }, {}, ['pi_1']),
        observe({ ...paid, id: 'in_c' }, {}, ['pi_1']),
      )
      await save(
        makeDocument('', { id: 1, reference: 'in_a' }),
        makeDocument('', { id: 2, reference: 'pi_1' }),
      )
      await succeed(store)
      const both = (other: string) =>
        `paid, and document 2 names payment pi_1, which ${other} has too: it is tied to none of them`
      assert.deepEqual(await find(), [
        [
          'in_a',
          'paid_without_document',
          'paid, and document 1 names in_a, but DOCUMENT_REFERENCE allows no plain ID',
        ],
        ['in_b', 'paid_without_document', both('in_c')],
        ['in_c', 'paid_without_document', both('in_b')],
      ])
    })

    it('finds documents that name an unknown payment or number, or one that several invoices have', async t => {
      const { store, find } = await createWorld(t, engine, { DOCUMENT_REFERENCE: '{id},{payment},{number}' })
      const rules = { ...defaultRules, ...templates('{id}', '{payment}', '{number}') }
      const { apply, save, saveClient } = linkedStore(store, rules)
      const paid = { status: 'paid', customer_tax_id: 'PT509442013' } as const
      await apply(
        observe({ ...paid, id: 'in_a', customer_id: 'cus_a', number: 'A-1' }, {}, ['pi_1', 'pi_2']),
        observe({ ...paid, id: 'in_b', customer_id: 'cus_b', number: 'B-1' }, {}, ['pi_2']),
        observe({ ...paid, id: 'in_c', customer_id: 'cus_c', number: 'C-1' }),
      )
      const named = ['pi_1', 'pi_2', 'pi_9', 'C-1', 'X-1', 'Order from Ana', 'B-1', 'pi_1']
      await save(
        ...named.map((reference, i) =>
          makeDocument('', { id: i + 1, reference, client_id: [0, 3, 7].includes(i) ? 7 : 8 }),
        ),
      )
      await saveClient(7, '509442013')
      await saveClient(8, '501964843')
      await succeed(store)
      const target = (id: number, words: string) =>
        `document ${id} of 2026-03-02 is settled, and refers to ${words}`
      assert.deepEqual(await find('--unlinked'), [
        ['in_a', 'several_documents', 'documents 1 (settled) and 8 (settled) are all in force'],
        [
          'in_b',
          'paid_without_document',
          'paid, and document 2 names payment pi_2, which in_a has too: it is tied to none of them',
        ],
        [null, 'document_of_several_invoices', target(2, 'payment pi_2, which in_a and in_b have')],
        [null, 'document_of_unknown_invoice', target(3, 'payment pi_9, which no invoice in the store has')],
        [
          null,
          'document_of_unknown_invoice',
          target(
            5,
            'number X-1, which no invoice in the store has whose customer has the tax ID of its client',
          ),
        ],
        [null, 'document_without_invoice', target(6, "'Order from Ana'")],
        [
          null,
          'document_of_unknown_invoice',
          target(
            7,
            'number B-1, which no invoice in the store has whose customer has the tax ID of its client',
          ),
        ],
      ])
    })

    it('shows both sides of a difference in columns', async t => {
      const { store, run } = await createWorld(t, engine)
      const invoice = { id: 'in_1', number: 'N-1', display_name: 'Lima, "Ana"', total_cents: -500 }
      await plant(store, [{ invoice, document: { id: 1, number: '6/G', status: 'sent', total: '-5.5' } }])
      await succeed(store)
      const rows = readCsv((await run('--format', 'csv')).stdout)
      const [header = [], ...others] = rows
      assert.deepEqual(header.join(','), csvHeader)
      const customer = ['cus_ana', 'Lima, "Ana"', 'in_1', 'N-1']
      const sides = [...customer, '2026-03-02T09:30:00.000Z', 'eur', '-500', '-5.00']
      const document = ['1', '6/G', 'sent', 'Euro', '-5.5']
      assert.deepEqual(
        others.map(row => row.slice(0, -1)),
        [
          ['paid_not_settled', ...sides, ...document],
          ['total_differs', ...sides, ...document],
        ],
      )
      const { stdout } = await run('--format', 'csv-pt', '--timezone', 'Europe/Madrid')
      assert.match(stdout, /^\uFEFFkind;customer_id;[^\n]+\r\n[^\n]+\r\n/)
      const [, inPortuguese = []] = parse(stdout, { delimiter: ';', bom: true })
      assert.deepEqual(inPortuguese.slice(0, -1), [
        'paid_not_settled',
        ...customer,
        ...['2026-03-02 10:30:00', 'eur', '-500', '-5,00', '1', '6/G', 'sent', 'Euro', '-5,5'],
      ])
      const [first = ''] = (await run('--format', 'json')).stdout.split('\n')
      const json = JSON.parse(first)
      assert.deepEqual(Object.keys(json).join(','), csvHeader)
      assert.deepEqual([json.document_id, json.total, json.document_total], [1, '-5.00', '-5.5'])
    })

    it('respects the first and last moment of a month in a time zone, also when clocks change', async t => {
      const { store, run, find, look } = await createWorld(t, engine)
      const at = (id: string, issued_at: string) => ({ invoice: { id, issued_at } })
      await plant(store, [
        at('in_1', '2026-03-31T22:59:59.999Z'),
        at('in_2', '2026-03-31T23:00:00.000Z'),
        at('in_3', '2026-04-30T22:59:59.999Z'),
        at('in_4', '2026-04-30T23:00:00.000Z'),
        at('in_5', '2026-10-31T23:59:59.999Z'),
        at('in_6', '2026-11-01T00:00:00.000Z'),
        at('in_7', '2026-02-28T23:59:59.999Z'),
      ])
      await succeed(store)
      const ids = async (...args: string[]) => (await find(...args)).map(([id]) => id).join(' ')
      const lisbon = ['--timezone', 'Europe/Lisbon']
      const timezone = 'Europe/Lisbon'
      assert.equal(await ids('--month', '2026-04', ...lisbon), 'in_2 in_3')
      assert.equal(await look({ month: '2026-03', timezone }), 'in_1')
      assert.equal(await look({ month: '2026-10', timezone }), 'in_5')
      assert.equal(await ids('--month', '2026-11', ...lisbon), 'in_6')
      assert.equal(await look({ month: '2026-02', timezone }), 'in_7')
      assert.equal(await look({ month: '2026-04' }), 'in_3 in_4')
      assert.equal(await look({ from: '2026-05-01', to: '2026-05-01', timezone }), 'in_4')
      assert.match(unwrapped((await run('--month', '2026-05', ...lisbon)).stdout), /in_4 .* 2026-05-01 /)
    })

    it('finds no difference in a correct store, and shows the number of checked invoices', async t => {
      const { store, run } = await createWorld(t, engine)
      await plant(store, [{ invoice: { id: 'in_1' }, document: { id: 1 }, taxId }])
      await succeed(store)
      const outcome = await run()
      assert.deepEqual(
        [outcome.code, outcome.stdout, outcome.stderr],
        [0, '', 'No differences in 1 invoice checked.\n'],
      )
      assert.equal((await run('--format', 'csv')).stdout, `${csvHeader}\r\n`)
      assert.equal((await run('--format', 'json')).stdout, '')
    })

    it('checks one customer, or the days from the first to the last inclusive', async t => {
      const { store, run, find, look } = await createWorld(t, engine)
      const at = (id: string, issued_at: string, customer_id = 'cus_ana') => ({
        invoice: { id, issued_at, customer_id },
      })
      await plant(store, [
        at('in_1', '2026-03-01T23:59:59.999Z'),
        at('in_2', '2026-03-02T00:00:00.000Z'),
        at('in_3', '2026-03-03T23:59:59.999Z'),
        at('in_4', '2026-03-04T00:00:00.000Z'),
        at('in_0', '2026-03-03T00:00:00.000Z', 'cus_bea'),
      ])
      await succeed(store)
      const ids = async (...args: string[]) => (await find(...args)).map(([id]) => id).join(' ')
      assert.equal(await look({}), 'in_1 in_2 in_3 in_4 in_0')
      assert.equal(await look({ customer: 'cus_bea' }), 'in_0')
      assert.equal(await ids('--from', '2026-03-02', '--to', '2026-03-03'), 'in_2 in_3 in_0')
      assert.equal(await look({ from: '2026-03-04' }), 'in_4')
      assert.equal(await look({ to: '2026-03-01' }), 'in_1')
      assert.equal(await ids('--customer', 'cus_ana', '--from', '2026-03-03', '--to', '2026-03-03'), 'in_3')
      assert.match((await run('--to', '2020-01-01')).stderr, /^No differences in 0 invoices checked/)
      const unknown = await run('--customer', 'cus_nobody')
      assertUnchecked(unknown, /no invoice of cus_nobody.*fatura status/)
    })

    it('refuses to compare before the documents are read completely', async t => {
      const { store, run, find } = await createWorld(t, engine)
      await plant(store, [{ invoice: { id: 'in_1', customer_id: 'cus_a' }, claim: null }])
      assert.equal((await find()).length, 1, 'imported invoices say what they know')
      await plant(store, [{ invoice: { id: 'in_2', customer_id: 'cus_b' } }])
      const refusal = /never read completely.*fatura sync" with InvoiceXpress/
      assertUnchecked(await run(), refusal)
      await store.transaction(tx =>
        tx.saveStream({ name: 'ix:all', cursor: '2026-01', succeeded_at: null, failed_at: now, error: 'E' }),
      )
      assertUnchecked(await run('--format', 'csv'), refusal)
      assert.equal((await find('--customer', 'cus_a')).length, 1)

      await succeed(store, ['ix:all'], now - 30 * 24 * hour)
      assert.match((await run()).stderr, /^Warning: .*last read at an unknown time.*\n2 differences/s)
      await succeed(store, ['ix:open'], now - 25 * hour)
      assert.match((await run()).stderr, new RegExp(`^Warning: .*${ago(25 * hour)}.*fatura sync`, 's'))
      await succeed(store, ['ix:open'], now - 23 * hour)
      assert.match((await run()).stderr, /^2 differences/)
    })

    it('obeys the settings of the link', async t => {
      const env = {
        LINK_IGNORE_ZERO: 'on',
        LINK_IGNORE_BEFORE: '2026-01-01',
        LINK_CREATING_TIMEOUT: '3h',
      }
      const { store, find } = await createWorld(t, engine, env)
      await plant(store, [
        { invoice: { id: 'in_1', total_cents: 0 } },
        { invoice: { id: 'in_2', issued_at: '2025-12-31T23:59:59.999Z' } },
        { invoice: { id: 'in_3' }, claim: { state: 'creating', attempted_at: ago(2 * hour) } },
        { invoice: { id: 'in_4' }, claim: { state: 'creating', attempted_at: ago(4 * hour) } },
      ])
      await succeed(store)
      assert.deepEqual(
        (await find()).map(([id, kind]) => `${id} ${kind}`),
        ['in_4 stuck_creating'],
      )
    })

    it('reads a store in many batches, in the order of its keys', async t => {
      const { store, find } = await createWorld(t, engine)
      const ids = Array.from({ length: 1_201 }, (_, index) => `in_${String(index).padStart(5, '0')}`)
      await plant(
        store,
        ids.map((id, index) => ({
          invoice: { id, customer_id: `cus_${index % 3}`, status: index % 2 ? 'paid' : 'uncollectible' },
        })),
      )
      await succeed(store)
      const found = await find()
      const wanted = [0, 1, 2].flatMap(customer =>
        ids.filter((_, index) => index % 3 === customer && index % 2 === 1),
      )
      assert.deepEqual(
        found.map(([id]) => id),
        wanted,
      )
    })
  })

const csvHeader =
  'kind,customer_id,customer_name,invoice_id,number,issued_at,currency,total_cents,total,document_id,document_number,document_status,document_currency,document_total,detail'
const [sqlite] = engines as [Engine]

/** Exit code 2, nothing on standard output, one line that says what to do. */
function assertUnchecked(outcome: Outcome, pattern: RegExp): void {
  assert.match(outcome.stderr, /^fatura: [^\n]+\n$/)
  assert.match(outcome.stderr, pattern)
  assert.deepEqual([outcome.code, outcome.stdout], [2, ''])
}

/** As RFC 4180 has it: rows end with CRLF, and quotes within quotes are doubled. */
function readCsv(text: string): string[][] {
  const rows: string[][] = [[]]
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain ?? '')
    if (end !== ',') rows.push([])
  }
  assert.deepEqual(rows.pop(), [], 'it ends with CRLF')
  return rows
}

describe('fatura reconcile', { concurrency: 2 }, () => {
  it('writes csv without formulas, and every cell is read back exactly', async t => {
    const { store, run } = await createWorld(t, sqlite)
    const errors = ['=HYPERLINK("http://x","y")', '+1', '-1', '@SUM(A1)', 'a "b", c\r\nd', 'plain']
    await plant(
      store,
      errors.map((error, index) => ({
        invoice: { id: `in_${index}`, number: index === 0 ? '=1+1' : null },
        claim: { state: 'failed', error },
      })),
    )
    await succeed(store)
    const { code, stdout } = await run('--format', 'csv')
    assert.equal(code, 1)
    const rows = readCsv(stdout)
    assert.equal(rows[0]?.join(','), csvHeader)
    const [, first = []] = rows
    assert.deepEqual(first.slice(0, 6), [
      'failed',
      'cus_ana',
      'Ana Lima',
      'in_0',
      "'=1+1",
      '2026-03-02T09:30:00.000Z',
    ])
    assert.deepEqual(
      rows.slice(1).map(row => row.at(-1)),
      errors.map(error => (/^[=+\-@]/.test(error) ? `'${error}` : error)),
    )
    for (const cell of rows.flat()) assert.doesNotMatch(cell, /^[=+\-@\t\r]/)
  })

  it('prints no control characters of stored texts', async t => {
    const { store, run } = await createWorld(t, sqlite)
    const error = '\x1b[2J\x1b]0;gone\x07 \u202eevil\r\nfailed  cus_x'
    await plant(store, [{ invoice: { id: 'in_1' }, claim: { state: 'failed', error } }])
    await succeed(store)
    const { stdout } = await run()
    assert.equal(unwrapped(stdout).split('\n').length, 3)
    assert.doesNotMatch(stdout, /[\x00-\x09\x0b-\x1f\u202e]/)
  })

  const mistakes: [args: string[], env: Record<string, string>, says: RegExp][] = [
    [['--tolerance', '-1'], {}, /--tolerance must be a whole number from 0 to 1000/],
    [[], { SIMPLIFIED_LIMIT: 'much' }, /SIMPLIFIED_LIMIT must be a whole number/],
    [['--customer', 'in_1'], {}, /--customer must be an ID such as cus_/],
    [[], { DATABASE_URL: 'sqlite:nowhere.db' }, /no database at nowhere\.db/],
    [[], { DATABASE_URL: 'mysql://x' }, /DATABASE_URL must be/],
    [[], { LINK_IGNORE_ZERO: 'yes' }, /LINK_IGNORE_ZERO must be on or off, not 'yes'/],
  ]
  for (const [args, env, says] of mistakes)
    it(`ends with exit code 2 and one line for ${[...args, ...Object.entries(env).flat()].join(' ')}`, async t => {
      const cli = await createCli(t)
      assertUnchecked(await cli.run(['reconcile', ...args], { env }), says)
    })

  it('names the allowed values of each setting of the link', () => {
    const wrong: [setting: Setting, value: string, says: RegExp][] = [
      ['LINK_IGNORE_BEFORE', '1.1.2026', /^LINK_IGNORE_BEFORE must be a calendar day/],
      ['LINK_CREATING_TIMEOUT', '1 hour', /^LINK_CREATING_TIMEOUT must be a number and s, m, h or d/],
      [
        'DOCUMENT_REFERENCE',
        'Stripe',
        /^DOCUMENT_REFERENCE must be different texts separated by commas, each with \{id\}/,
      ],
    ]
    for (const [setting, value, says] of wrong) assert.match(refusalOf(setting, value), says)
  })

  it('names the allowed values of the invoice filters', () => {
    const scopes: [options: Record<string, string>, says: RegExp][] = [
      [{ from: '2026-02-30' }, /^--from must be a calendar day, written YYYY-MM-DD, not '2026-02-30'\.$/],
      [{ to: 'today' }, /^--to must be a calendar day/],
      [{ from: '2026-03-03', to: '2026-03-02' }, /^--from 2026-03-03 is after --to 2026-03-02/],
      [{ month: '2026-13' }, /^--month must be a calendar month, written YYYY-MM, not '2026-13'\.$/],
      [{ month: '2026-03', to: '2026-03-02' }, /^Use --month, or --from and --to, not both\.$/],
      [{ timezone: 'Lisbon' }, /^--timezone must be the name of a time zone, such as Europe\/Lisbon/],
    ]
    for (const [options, says] of scopes)
      assert.throws(() => readScope(options), { constructor: CliError, message: says })
  })

  it('ends with exit code 2 for an unknown format', async t => {
    const cli = await createCli(t)
    const { code, stderr } = await cli.run(['reconcile', '--format', 'xml'])
    assert.equal(code, 2)
    assert.match(stderr, /table, csv, csv-pt, json/)
  })
})

it('a day begins at its first moment in any time zone, even when midnight does not exist', () => {
  const starts: [zone: string, day: string, start: string][] = [
    ['UTC', '2026-10-01', '2026-10-01T00:00:00.000Z'],
    ['Europe/Lisbon', '2026-10-01', '2026-09-30T23:00:00.000Z'],
    ['Europe/Lisbon', '2026-11-01', '2026-11-01T00:00:00.000Z'],
    ['America/Sao_Paulo', '2018-11-04', '2018-11-04T03:00:00.000Z'],
    ['Pacific/Kiritimati', '2026-01-01', '2025-12-31T10:00:00.000Z'],
    ['Pacific/Pago_Pago', '2026-01-01', '2026-01-01T11:00:00.000Z'],
    ['Asia/Kathmandu', '2026-01-01', '2025-12-31T18:15:00.000Z'],
  ]
  for (const [zone, day, start] of starts) {
    const { startOf, dayOf } = createTimeZone(zone)
    assert.equal(new Date(startOf(day)).toISOString(), start, zone)
    assert.equal(dayOf(Date.parse(start)), day)
    assert.ok(dayOf(Date.parse(start) - 1) < day)
  }
})

describe('amounts in a reconciliation', () => {
  const amounts: [cents: number, currency: string, decimal: string, isSame: boolean | null][] = [
    [1234, 'eur', '12.34', true],
    [1234, 'eur', '12.340', true],
    [1234, 'eur', '12.35', false],
    [1234, 'eur', '12.33', false],
    [1234, 'eur', '12.349', true],
    [1234, 'eur', '12.331', true],
    [1234, 'eur', '12.33000000000000000000', false],
    [1230, 'eur', '12.3', true],
    [1200, 'eur', '12', true],
    [1200, 'eur', '12.', true],
    [-500, 'eur', '-5.00', true],
    [-500, 'eur', '5.00', false],
    [0, 'eur', '0.0', true],
    [0, 'eur', '-0', true],
    [5, 'eur', '0.05', true],
    [500, 'jpy', '500', true],
    [500, 'jpy', '5', false],
    [500, 'jpy', '500.9', true],
    [5130, 'kwd', '5.13', true],
    [5130, 'kwd', '51.30', false],
    [500, 'ugx', '5', true],
    [500, 'isk', '5.00', true],
    [9007199254740991, 'eur', '90071992547409.91', true],
    [9007199254740991, 'eur', '90071992547409.90', false],
    [1234, 'eur', '12,34', null],
    [1234, 'eur', '1e2', null],
    [1234, 'eur', '', null],
  ]
  it('are compared to the smallest unit without rounding', () => {
    for (const [cents, currency, decimal, isSame] of amounts)
      assert.equal(isSameAmount(cents, currency, decimal), isSame, `${cents} ${currency} ${decimal}`)
  })

  it('have the decimals of Stripe’s currencies', () => {
    const all = ['bif', 'clp', 'djf', 'gnf', 'jpy', 'kmf', 'krw', 'mga', 'pyg', 'rwf', 'vnd', 'vuv', 'xaf']
    for (const currency of [...all, 'xof', 'xpf']) assert.equal(decimalsOf(currency), 0, currency)
    for (const currency of ['bhd', 'jod', 'kwd', 'omr', 'tnd'])
      assert.equal(decimalsOf(currency), 3, currency)
    for (const currency of ['eur', 'usd', 'ugx', 'isk', 'huf', 'twd']) assert.equal(decimalsOf(currency), 2)
  })

  it('are written with all their decimals', () => {
    const written = [
      [1234, 'eur', '12.34'],
      [5, 'eur', '0.05'],
      [-5, 'eur', '-0.05'],
      [0, 'kwd', '0.000'],
      [500, 'jpy', '500'],
    ] as const
    for (const [cents, currency, text] of written) assert.equal(writeAmount(cents, currency), text)
  })

  it('are equal after being written and read again', () => {
    const currency = fc.constantFrom('eur', 'jpy', 'kwd', 'ugx')
    fc.assert(
      fc.property(fc.maxSafeInteger(), currency, (cents, currency) => {
        const text = writeAmount(cents, currency)
        assert.equal(isSameAmount(cents, currency, text), true)
        if (cents < Number.MAX_SAFE_INTEGER) assert.equal(isSameAmount(cents + 1, currency, text), false)
      }),
    )
  })

  it('recognize currencies by their names, and never take one name for another', () => {
    const names = {
      Euro: 'eur',
      'US Dollar': 'usd',
      'Pound Sterling': 'gbp',
      ' british  pound': 'gbp',
      EUR: 'eur',
    }
    for (const [name, code] of Object.entries(names)) assert.equal(currencyOf(name), code, name)
    for (const name of ['Yen', 'Swiss Franc', 'Brazilian Real', 'Kuwaiti Dinar'])
      assert.match(currencyOf(name) ?? '', /^[a-z]{3}$/)
    for (const name of [null, '', 'Dollar', 'Galleon', 'constructor', '€'])
      assert.equal(currencyOf(name), null)
  })
})

it('tax IDs are equal whatever their separators, their case and a country on one side', () => {
  const same = [
    ['PT123456789', 'pt 123 456 789'],
    ['PT123456789', '123.456.789'],
    ['123456789', 'PT-123456789'],
    ['ESB12976283', 'B-12976283'],
    ['１２３', '123'],
    ['PT 509 442 013', '509442013'],
    ['GR094259216', 'EL 094259216'],
    ['GR094259216', '094259216'],
    // That of an anonymous client is none.
    ['999999990', ''],
    ['PT 999 999 990', ''],
  ] as const
  const other = [
    ['PT123456789', 'ES123456789'],
    ['PT123456789', '123456780'],
    ['PT123456789', ''],
    ['PT', ''],
    ['123456789', 'PTPT123456789'],
    ['GR094259216', 'PT094259216'],
    ['123456789', '999999990'],
  ] as const
  for (const [a, b] of same) assert.ok(isSameTaxId(a, b) && isSameTaxId(b, a), `${a} ${b}`)
  for (const [a, b] of other) assert.ok(!isSameTaxId(a, b) && !isSameTaxId(b, a), `${a} ${b}`)
})

describe('findDifferences', () => {
  /** Faults of a pair that is otherwise right; `kinds` must be found then. */
  const plan = fc.record({
    cents: fc.integer({ min: -10_000_000, max: 10_000_000 }),
    currency: fc.constantFrom('eur', 'jpy', 'kwd'),
    status: fc.constantFrom('draft', 'open', 'paid', 'void', 'uncollectible'),
    link: fc.constantFrom('none', 'ignored', 'creating', 'stuck', 'failed', 'gone', 'tied'),
    documentStatus: fc.constantFrom('draft', 'final', 'sent', 'settled', 'canceled'),
    offBy: fc.constantFrom(0, 0, 1, -1, 2, 100),
    taxId: fc.constantFrom('same', 'other', 'none', 'unread'),
    second: fc.boolean(),
    isWithheld: fc.boolean(),
    amounts: fc.constantFrom('in its currency', 'beside euros', 'in euros alone'),
  } as const)

  it('finds exactly the planted differences', () => {
    fc.assert(
      fc.property(plan, planted => {
        const { cents, currency, status, link, documentStatus, offBy, taxId, second, amounts } = planted
        const isTied = link === 'tied'
        const counts = isTied && documentStatus !== 'canceled'
        const kinds: DifferenceKind[] = []
        const isMissing = link === 'none' || (isTied && /draft|canceled/.test(documentStatus))
        if (cents > 0 && isMissing && (status === 'paid' || status === 'open'))
          kinds.push(`${status}_without_document`)
        if (status === 'paid' && isTied && /final|sent/.test(documentStatus)) kinds.push('paid_not_settled')
        if (status === 'open' && cents > 0 && isTied && documentStatus === 'settled')
          kinds.push('open_settled')
        const isTwice = second && counts && documentStatus !== 'draft'
        if (isTwice) kinds.push('several_documents')
        if (status === 'void' && counts) kinds.push('document_on_void')
        const isForeign = amounts !== 'in its currency' && currency !== 'eur'
        if (counts && isForeign && amounts === 'in euros alone') kinds.push('currency_unknown')
        else if (counts && offBy !== 0) kinds.push(Math.abs(offBy) === 1 ? 'rounding' : 'total_differs')
        if (link === 'stuck') kinds.push('stuck_creating')
        if (link === 'failed' || link === 'gone') kinds.push('failed')
        if (counts && taxId === 'other') kinds.push('tax_id_differs')
        if (counts && taxId === 'none') kinds.push('tax_id_one_side')

        const state = { none: 'not_synced', stuck: 'failed', gone: 'failed', tied: 'synced' } as const
        const invoice = makeInvoice({
          id: 'in_p',
          total_cents: cents,
          ...(planted.isWithheld && { tax_cents: 0 }),
          currency,
          status,
          ix_sync_state: link in state ? state[link as keyof typeof state] : (link as 'failed'),
          ...(isTied && { ix_id: 5, ix_status: documentStatus }),
        })
        const claims: Record<typeof link, Partial<Claim>> = {
          none: {},
          ignored: { state: 'ignored' },
          creating: { state: 'creating', attempted_at: ago(1_000) },
          stuck: { state: 'creating', attempted_at: ago(2 * hour) },
          failed: { state: 'failed', error: 'E' },
          gone: { state: 'synced', ix_id: 5 },
          tied: { state: 'synced', ix_id: 5 },
        }
        const total = writeAmount(cents + offBy, currency)
        const charged = isForeign ? '98.40' : total
        const document = makeDocument('in_p', {
          ...{ id: 5, status: documentStatus, total: charged, currency: isForeign ? 'Euro' : currency },
          ...(planted.isWithheld && { before_taxes: charged, taxes_total: '0.00', retention: '25' }),
          // Far from any amount that could be left to pay.
          ...(planted.isWithheld && !isForeign && { total: '-1000000' }),
          ...(amounts === 'beside euros' && isForeign && { multicurrency: { rate: null, currency, total } }),
        })
        const again = makeDocument('in_p', { id: 6 })
        const known =
          isTied && second
            ? [{ id: 6, document: again, misses: 0, observed_stamp: 1, client_tax_id: null }]
            : []
        const clients = { same: '123456789', other: '9', none: null, unread: undefined }
        const linked: LinkedInvoice = {
          customer_id: invoice.customer_id,
          id: invoice.id,
          summary: JSON.stringify(invoice),
          payment: completePaymentFacts(invoice),
          observed_stamp: 1,
          claim: { ...noClaim, ...claims[link] },
          document:
            isTied || link === 'gone'
              ? { id: 5, document, misses: link === 'gone' ? 2 : 0, observed_stamp: 1, client_tax_id: null }
              : null,
          client_tax_id: clients[taxId],
        }
        assert.deepEqual(
          findDifferences(linked, known, defaultRules, stripeIdentity, now).map(({ kind }) => kind),
          kinds,
        )
      }),
      { numRuns: 2_000 },
    )
  })
})
