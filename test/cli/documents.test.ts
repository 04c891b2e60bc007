/** Both systems through the command line: sync, status, serve, reconcile and explain, as an operator runs them. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import {
  createDocuments,
  type DocumentAccount,
  type DocumentOptions,
} from '../../sandbox/invoicexpress/account.ts'
import type { DifferenceKind, Planted } from '../../sandbox/invoicexpress/differences.ts'
import { parseDay } from '../../sandbox/invoicexpress/objects.ts'
import { type SaftDifferenceKind, saftDifferenceKinds } from '../../sandbox/invoicexpress/saft-differences.ts'
import { type InvoiceXpressSandbox, startInvoiceXpressSandbox } from '../../sandbox/invoicexpress/server.ts'
import { dayIn, monthOf } from '../../src/domain/calendar.ts'
import { openWriteStore } from '../../src/store/engines.ts'
import { assertDocumentsTrue } from '../support/checks/document-truth.ts'
import { createSyncWorld, fillStore, type SyncWorld } from '../support/checks/sync-truth.ts'
import { type Answer, createStoredToken, eventually, get, type Outcome } from '../support/clients/cli.ts'
import { type Engine, engines } from '../support/databases/engines.ts'

const key = 'ix_canaryKey_0123456789'

interface World extends SyncWorld {
  documents: DocumentAccount
  ix: InvoiceXpressSandbox
  /** A command whose output is for the operator's eyes: it may hold tax ids. */
  look(args: readonly string[]): Promise<Outcome>
  /** Runs `sync --once`. What is gone is missed twice only after another time. */
  sync(): Promise<void>
  /** The same within this process. */
  fill(): Promise<void>
}

async function createWorld(
  t: TestContext,
  engine: Engine,
  invoices: number,
  options: DocumentOptions = {},
): Promise<World> {
  const url = await engine.createStore(t)
  const world = await createSyncWorld(t, { invoices, lines: 1, seed: 21, days: 100 }, url)
  const documents = createDocuments(world.account, options)
  const ix = await startInvoiceXpressSandbox({ documents, apiKey: key })
  t.after(() => ix.close())
  const env = { INVOICEXPRESS_API_KEY: key, INVOICEXPRESS_API_BASE: ix.address }
  const run: World['run'] = (args, more = {}) => world.run(args, { ...more, env: { ...env, ...more.env } })
  return {
    ...world,
    documents,
    ix,
    run,
    start: (args, more = {}) => world.start(args, { ...more, env: { ...env, ...more.env } }),
    look: args => world.cli.run(args, { env: { ...world.env, ...env } }),
    fill: () => fillStore(world, { account: null, apiKey: key, base: ix.address }),
    async sync() {
      const { code, stderr } = await run(['sync', '--once'])
      assert.equal(code, 0, stderr)
    },
  }
}

async function assertTrue({ url, account, documents }: World): Promise<void> {
  const store = await openWriteStore(url)
  try {
    await assertDocumentsTrue(store, account, documents)
  } finally {
    await store.close()
  }
}

/** By what was planted, the kind under which it is listed. */
const kinds: Record<DifferenceKind, string> = {
  paid_without_document: 'paid_without_document',
  live_document_of_void: 'document_on_void',
  total_by_smallest_unit: 'rounding',
  total: 'total_differs',
  stuck_creating: 'stuck_creating',
  failed: 'failed',
  tax_id: 'tax_id_differs',
  tax: 'tax_differs',
  tax_id_one_side: 'tax_id_one_side',
  credit_note_missing: 'credit_note_missing',
  credit_note_unmatched: 'credit_note_unmatched',
  open_settled: 'open_settled',
  open_without_document: 'open_without_document',
  wrong_month: 'wrong_month',
  late: 'late',
  simplified_over_limit: 'simplified_over_limit',
  exemption: 'exemption_differs',
  paid_not_settled: 'paid_not_settled',
  several_documents: 'several_documents',
  document_of_unknown_invoice: 'document_of_unknown_invoice',
  document_without_invoice: 'document_without_invoice',
}

/** The same for what was planted in a SAF-T file, and whether it is listed at its document. */
const listedAs: Record<SaftDifferenceKind, [kind: string, isAtDocument: boolean][]> = {
  saft_omitted: [
    ['not_in_saft', true],
    ['numbers_missing', false],
  ],
  saft_invented: [['not_in_store', false]],
  saft_canceled: [['canceled_in_one', true]],
  saft_total: [['total_differs', true]],
  saft_tax_id: [['tax_id_differs', true]],
  saft_date: [['date_differs', true]],
  saft_atcud: [['number_differs', true]],
  saft_twice: [['number_twice', false]],
  saft_sum: [['saft_totals_differ', false]],
}

/** Invoices that carry the last day of a month at Lisbon, and were finalized, and documented, on the next. */
function findDated({ account, documents }: World): string[] {
  const monthIn = dayIn('Europe/Lisbon')
  const planted = new Set(
    documents.planted.flatMap(({ kind, invoice_id }) => (kind === 'wrong_month' ? (invoice_id ?? []) : [])),
  )
  return [...account.invoices.values()].flatMap(
    ({ id, customer, status, effective_at, status_transitions, metadata }) => {
      const { finalized_at } = status_transitions
      const document = documents.documents.get(Number(metadata.ix_id))
      if (!customer || status === 'void' || document === undefined || planted.has(id)) return []
      const [one, other] = [effective_at ?? 0, finalized_at ?? 0].map(at => monthIn(at * 1000).slice(0, 7))
      return one === other ? [] : `${id} wrong_month`
    },
  )
}

/** On a busy machine the store may not answer in time: that is told as 503, and who asks may ask again. */
async function ask(url: string, token: string): Promise<Answer> {
  let answer: Answer | undefined
  await eventually('the store answers in time', async () => {
    answer = await get(url, token)
    return answer.status !== 503 || answer.json.error.code !== 'unavailable'
  })
  return answer ?? assert.fail()
}

describe('commands over Stripe and InvoiceXpress', { concurrency: 6 }, () => {
  for (const engine of engines) {
    it(`with two systems that agree, on ${engine.name}`, async t => {
      const world = await createWorld(t, engine, 60, { states: 'ordinary' })
      await world.fill()

      await t.test('status shows the streams of both systems', async () => {
        const { stdout } = await world.look(['status', '--json'])
        const lines = stdout.trim().split('\n')
        const streams = lines.map(line => JSON.parse(line)).filter(({ name }) => name?.startsWith('ix:'))
        assert.deepEqual(
          streams.map(({ name, error }) => [name, error]),
          [
            ['ix:all', null],
            ['ix:open', null],
            ['ix:recent', null],
          ],
        )
      })

      await t.test(
        'reconcile reports only documents that are dated in another month than their invoice',
        async () => {
          const { stdout } = await world.look(['reconcile', '--all', '--format', 'json'])
          const rows = stdout.split('\n').filter(Boolean)
          const found = rows
            .map(line => JSON.parse(line))
            .map(({ kind, invoice_id }) => `${invoice_id} ${kind}`)
          assert.deepEqual(found.sort(), findDated(world).sort())
        },
      )

      // Once: no store has a part in it.
      if (engine === engines[0])
        await t.test('the API delivers the document’s PDF', async () => {
          const paid = [...world.account.invoices.values()].find(
            ({ status, metadata, customer }) =>
              status === 'paid' &&
              metadata.ix_id !== undefined &&
              world.account.customers.has(String(customer)),
          )
          const path = `/api/v1/client/${paid?.customer}/invoice/${paid?.id}`
          const token = await createStoredToken(world.url)
          const api = world.start(['serve', '--port', '0'])
          const [, address] = await api.waitFor(/"address":"(http:[^"]+)","msg":"listening"/)
          const { downloads } = (await ask(`${address}${path}`, token)).json
          assert.equal(downloads.ix, `${path}/ix/download`)
          const pdf = await ask(`${address}${downloads.ix}`, token)
          assert.deepEqual([pdf.status, pdf.headers.get('content-type')], [200, 'application/pdf'])
          assert.match(pdf.text, /^%PDF-/)
          await api.stop()
        })

      await t.test('explain shows the events of an invoice and its document in order', async () => {
        let id = world.account.change('finalize')
        // No document certifies a negative one.
        while ((world.account.invoices.get(id)?.total ?? 0) <= 0) id = world.account.change('finalize')
        world.documents.change('create', id)
        world.account.change('pay', id)
        await world.fill()
        const { code, stdout } = await world.look(['explain', id])
        assert.equal(code, 0)
        assert.match(stdout, /The document's state is synced, because there is a document claimed as \d+/)
        assert.match(stdout, /applied +invoice\.(paid|payment_succeeded|updated|finalized)/)
        assert.match(stdout, /ignored +invoice\.\S+ +evt_\w+ +read together with evt_/)
      })

      await t.test('a run of sync --once counts a missing document once', async () => {
        const open = [...world.account.invoices.values()].find(
          ({ status, metadata, customer }) => status === 'open' && metadata.ix_id !== undefined && customer,
        )
        const { id, metadata } = open ?? assert.fail()
        world.documents.change('vanish', Number(metadata.ix_id))
        const explained = async () => (await world.look(['explain', id])).stdout
        await world.sync()
        assert.match(await explained(), /state is synced/)
        await world.sync()
        assert.match(
          await explained(),
          /state is failed, because document \d+ is recorded, but .* no longer has it/,
        )
      })
    })

    it(`reconcile finds exactly the planted differences and exits with 1, on ${engine.name}`, async t => {
      const world = await createWorld(t, engine, 250, { states: 'ordinary', differences: 42 })
      assert.deepEqual(new Set(world.documents.planted.map(({ kind }) => kind)), new Set(Object.keys(kinds)))
      await world.fill()
      await assertTrue(world)
      const find = async (...args: string[]) => {
        const { code, stdout, stderr } = await world.look(['reconcile', '--all', '--format', 'json', ...args])
        assert.equal(code, 1, stderr)
        const lines = stdout.trim().split('\n')
        return lines.map(line => JSON.parse(line)).map(({ kind, invoice_id }) => `${invoice_id} ${kind}`)
      }
      const isApart = (kind: DifferenceKind) => /^document_(of|without)_/.test(kind)
      const planted = world.documents.planted
        // One without a customer is none of ours.
        .filter(
          ({ kind, invoice_id }) => isApart(kind) || world.account.invoices.get(invoice_id ?? '')?.customer,
        )
      const name = ({ kind, invoice_id }: Planted) => `${invoice_id} ${kinds[kind]}`
      const dated = findDated(world)
      assert.deepEqual(
        (await find()).sort(),
        [...planted.filter(({ kind }) => !isApart(kind)).map(name), ...dated].sort(),
      )
      // The documents of invoices that are none of ours refer to what is not in the store.
      const others = [...world.documents.documents.values()].flatMap(({ reference, status }) => {
        const invoice = world.account.invoices.get(reference ?? '')
        return invoice && !invoice.customer && status !== 'canceled'
          ? `${reference} document_of_unknown_invoice`
          : []
      })
      assert.ok(others.length > 0)
      assert.deepEqual((await find('--unlinked')).sort(), [...planted.map(name), ...dated, ...others].sort())
    })
  }

  it('reconcile --saft fetches the month’s SAF-T file and finds exactly the planted differences', async t => {
    const world = await createWorld(t, engines[0] ?? assert.fail(), 400, { states: 'ordinary' })
    await world.fill()
    // The month before the clock's: all of it is there.
    const month = monthOf(Date.parse(`${monthOf(world.account.clock * 1000)}-01`) - 1)
    const find = async () => {
      const { code, stdout, stderr } = await world.look(['reconcile', '--saft', month, '--json'])
      assert.doesNotMatch(stdout + stderr, new RegExp(`${key}|${world.ix.address}|/saft/`))
      const lines = stdout.split('\n').filter(Boolean)
      const found = lines.map(line => JSON.parse(line))
      return { code, stderr, found: found.map(({ kind, document_id }) => `${document_id} ${kind}`) }
    }
    // Paid, issued on the month's last day in Lisbon, and finalized a day later.
    const dayOf = dayIn('Europe/Lisbon')
    const late = [...world.documents.documents.values()].flatMap(({ id, reference, date }) => {
      const invoice = world.account.invoices.get(reference ?? '')
      const at = invoice?.effective_at ?? invoice?.status_transitions.finalized_at ?? 0
      const isLate = dayOf(at * 1000).startsWith(month) && !parseDay(date)?.startsWith(month)
      return isLate && invoice?.status === 'paid' && invoice.customer ? `${id} paid_not_in_saft` : []
    })
    const right = await find()
    assert.deepEqual([right.code, right.found], [late.length === 0 ? 0 : 1, late], right.stderr)
    assert.match(
      right.stderr,
      // Between the two, a slow run shows its progress.
      /^InvoiceXpress is making the SAF-T file of \d{4}-\d\d …\n(?:.*\n)*.*ifferences? in \d{2,} documents of the file/,
    )
    const planted = saftDifferenceKinds.map(kind => world.documents.plantInSaft(kind, month))
    const wrong = await find()
    const expected = planted.flatMap(({ kind, document_id }) =>
      listedAs[kind].map(([listed, isAtDocument]) => `${isAtDocument ? document_id : null} ${listed}`),
    )
    assert.deepEqual([wrong.code, wrong.found.sort()], [1, [...expected, ...late].sort()], wrong.stderr)
  })
})
