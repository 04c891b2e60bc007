/** Invoices that are refused: each is named once, with its reason, until the payment platform's record is good or gone. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { StripeInvoice } from '../../sandbox/stripe/objects.ts'
import { createStoreMetrics } from '../../src/operations/metrics/store-metrics.ts'
import { refusalReasons, refusedKinds } from '../../src/store/connector-store.ts'
import { openOperatorStore } from '../../src/store/engines.ts'
import type { Connector } from '../../src/sync/invoices/connector.ts'
import { examineHere } from '../support/checks/examine.ts'
import { assertFits, createCli, eventually } from '../support/clients/cli.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { type Delay, holdSource, type Rig, readAll, startRig, truthOf } from '../support/worlds/sync.ts'

interface Shown {
  kind: string
  reason: string
  count: number
  examples: string[]
}

interface Clinic extends Rig {
  /** What of the account is sound, and not yet changed by the test. */
  take(status: string): StripeInvoice
  spoil(invoice: StripeInvoice, fields: Record<string, unknown>): void
  run(args: readonly string[]): Promise<string>
  /** The lines of `status --json` about refused invoices. */
  shown(): Promise<Shown[]>
  /** The metric's values that are not 0; there is one for each kind and reason. */
  metric(): Promise<[kind: unknown, reason: unknown, count: number][]>
  wrong(): Promise<Record<string, string>>
}

async function open(t: TestContext, engine: Engine): Promise<Clinic> {
  const rig = await startRig(t, engine, { invoices: 60, lines: 1, seed: 71 })
  const { account, url } = rig
  const cli = await createCli(t)
  const sound = truthOf(account).map(({ id }) => account.invoices.get(id) as StripeInvoice)
  const operator = await openOperatorStore(url)
  t.after(() => operator.close())
  const run: Clinic['run'] = async args => {
    const { code, stdout, stderr } = await cli.run(args, { env: { DATABASE_URL: url } })
    assert.deepEqual([code, stderr], [0, ''])
    return stdout
  }
  return {
    ...rig,
    run,
    take(wanted) {
      const place = sound.findIndex(({ status }) => status === wanted)
      return sound.splice(place, 1)[0] ?? assert.fail()
    },
    spoil: (invoice, fields) => account.invoices.set(invoice.id, { ...invoice, ...fields } as StripeInvoice),
    async shown() {
      const lines = (await run(['status', '--json'])).trimEnd().split('\n')
      return lines.map(line => JSON.parse(line)).filter(({ kind }) => ['refused', 'outdated'].includes(kind))
    },
    async metric() {
      const metrics = createStoreMetrics({
        openStore: async () => ({ operator, reader: rig.reader }),
        isOperator: true,
        hasDocuments: false,
        onProblem: error => assert.fail(String(error)),
      })
      const { values = [] } =
        (await metrics.read()).find(({ name }) => name === 'fatura_invoices_refused') ?? {}
      assert.equal(values.length, refusedKinds.length * refusalReasons.length)
      assert.equal(new Set(values.map(({ labels }) => `${labels.kind} ${labels.reason}`)).size, values.length)
      const wrong = values.filter(({ value }) => value !== 0)
      return wrong.map(({ labels, value }) => [labels.kind, labels.reason, value] as const).sort() as never
    },
    async wrong() {
      const findings = await examineHere({ DATABASE_URL: url })
      const wrong = findings.filter(({ check }) => check === 'Refused' || check === 'Out of date')
      return Object.fromEntries(wrong.map(({ result, check, detail }) => [check, `${result}: ${detail}`]))
    },
  }
}

const brief = ({ kind, reason, count }: Shown) => [kind, reason, count]

/** Tells of an invoice, as an event does that nobody has seen. */
function tellOf(connector: Connector, { id, created }: StripeInvoice): Promise<unknown> {
  const type = 'invoice.updated'
  return connector.applyNotification({
    id: `evt_${told++}`,
    type,
    created,
    invoice_id: id,
    customer_id: null,
  })
}
let told = 0

for (const engine of engines)
  describe(`refused invoices on ${engine.name}`, { concurrency: 2 }, () => {
    it('appear once in status, doctor, explain and a metric, until they are accepted or deleted', async t => {
      const clinic = await open(t, engine)
      const { account, connector, run, shown, spoil } = clinic
      const [odd, foreign, nameless, changing] = ['paid', 'void', 'open', 'paid'].map(clinic.take) as [
        StripeInvoice,
        StripeInvoice,
        StripeInvoice,
        StripeInvoice,
      ]
      const without = [...account.invoices.values()].filter(({ customer }) => customer === null)
      assert.ok(without.length > 0, 'some payers of the sandbox have an account and no customer')
      spoil(odd, { status: 'escheated' })
      spoil(foreign, { customer: 'user_7' })
      spoil(nameless, { id: null })
      await connector.backfill()
      const atFirst = await shown()
      assert.deepEqual(atFirst.map(brief), [
        ['refused', 'invalid_customer', 1],
        ['refused', 'no_customer', without.length],
        ['refused', 'no_id', 1],
        ['refused', 'unknown_status', 1],
      ])
      const examples = new Map(atFirst.map(each => [each.reason, each.examples]))
      assert.deepEqual(examples.get('unknown_status'), [odd.id])
      assert.deepEqual(examples.get('invalid_customer'), [foreign.id])
      assert.deepEqual(examples.get('no_id'), [])
      const named = examples.get('no_customer') ?? []
      assert.equal(named.length, Math.min(3, without.length))
      for (const id of named) assert.equal(account.invoices.get(id)?.customer, null)
      assert.deepEqual(await clinic.metric(), atFirst.map(brief))
      const text = await run(['status'])
      assertFits(text)
      assert.doesNotMatch(text, /\n\n\n/)
      assert.match(
        text,
        new RegExp(`^Refused and not stored, asked for again every hour: ${without.length + 3}\\.$`, 'm'),
      )
      assert.match(text, new RegExp(`^ {2}1: the status is not draft, .*\\n {4}\\(${odd.id}\\)$`, 'm'))
      assert.doesNotMatch(text, /Out of date|Set aside/)
      assert.match((await clinic.wrong()).Refused ?? '', new RegExp(`^warn: .*status.*${odd.id}`))
      assert.match(
        await run(['explain', odd.id]),
        new RegExp(`^Invoice ${odd.id} is not stored. Refused: the status`),
      )
      const [told] = (await run(['explain', odd.id, '--json'])).split('\n')
      const { invoice, set_aside } = JSON.parse(String(told))
      assert.deepEqual(
        [invoice, set_aside.kind, set_aside.reason],
        [{ id: odd.id }, 'refused', 'unknown_status'],
      )

      // Its new state is refused: what is stored is older than that.
      spoil(changing, { status: 'escheated' })
      await connector.relist(true)
      const later = await shown()
      assert.deepEqual(
        later.filter(({ kind }) => kind === 'refused').map(brief),
        atFirst.map(brief),
        'one entry for each, however often it is seen',
      )
      assert.deepEqual(
        later.filter(({ kind }) => kind === 'outdated'),
        [{ kind: 'outdated', reason: 'unknown_status', count: 1, examples: [changing.id] }],
      )
      assert.match(
        await run(['status']),
        new RegExp(`^Out of date because .*: 1\\.\n {2}1: .*\n {4}\\(${changing.id}\\)$`, 'm'),
      )
      assert.match((await clinic.wrong())['Out of date'] ?? '', new RegExp(`^FAIL: .*${changing.id}`))
      const explained = await run(['explain', changing.id])
      assert.match(explained, /^status +paid/m)
      assert.match(explained, /^The stored version is out of date\. Refused: the status .*; since \S+Z, /m)

      // Good again, by a list; and gone, though nothing told of it.
      for (const invoice of [odd, foreign, changing]) spoil(invoice, {})
      for (const { id } of without) {
        account.order.remove(account.invoices.get(id) as StripeInvoice)
        account.invoices.delete(id)
      }
      spoil(nameless, {})
      await connector.relist(true)
      assert.deepEqual((await shown()).map(brief), [
        ['refused', 'no_customer', without.length],
        ['refused', 'no_id', 1],
      ])
      assert.equal(await connector.retrySetAside('all'), null, 'nothing is asked for again at once')
      const long = 4 * 24 * 60 * 60_000
      const aside = await clinic.store.listSetAside(1_000)
      await clinic.store.transaction(async tx => {
        for (const record of aside) await tx.setAside({ ...record, due_at: 0 }, record.last_at - long)
      })
      await connector.retrySetAside('all')
      assert.deepEqual(await shown(), [])
      assert.deepEqual(await clinic.metric(), [])
      assert.deepEqual(await clinic.wrong(), {})
      assert.equal((await readAll(clinic.store)).length, account.invoices.size)
    })

    it('follow the newest answer, not the last to arrive, and disappear with a deleted invoice', async t => {
      const clinic = await open(t, engine)
      const { account, connector, shown, spoil } = clinic
      await connector.backfill()
      const usual = (await shown()).map(brief)
      const [paid, draft] = [clinic.take('paid'), clinic.take('draft')]
      const held = holdSource(clinic.source, ['answer', ...Array<Delay>(99).fill('none')])
      const other = await clinic.connect({ source: held })
      const listing = other.relist(true)
      await eventually(
        'the list was answered',
        () => Number(clinic.sandbox.requests.get('list_invoices')) > 1,
      )
      spoil(paid, { status: 'escheated' })
      await tellOf(other, paid)
      const outdated = ['outdated', 'unknown_status', 1]
      assert.deepEqual((await shown()).map(brief), [outdated, ...usual])
      held.releaseAll()
      await listing
      assert.deepEqual((await shown()).map(brief), [outdated, ...usual], 'the list was asked for before')

      // An invoice is one of these at most: it does not fit any more, and is told as such alone.
      spoil(paid, { total: 'many' })
      await tellOf(other, paid)
      assert.deepEqual((await shown()).map(brief), usual)
      assert.match(await clinic.run(['explain', paid.id]), /^Set aside: .*does not fit.*; since /m)
      spoil(paid, {})
      await tellOf(other, paid)
      assert.deepEqual(await clinic.store.listSetAside(9, 'stripe', { kind: 'invoice' }), [])

      spoil(draft, { customer: null })
      await tellOf(other, draft)
      assert.deepEqual((await shown()).map(brief), [['outdated', 'no_customer', 1], ...usual])
      spoil(draft, {})
      account.change('delete', draft.id)
      await tellOf(other, draft)
      assert.deepEqual((await shown()).map(brief), usual)

      // Only a draft can be deleted: what is not found any more is shown, and said to be out of date.
      account.invoices.delete(paid.id)
      await tellOf(other, paid)
      assert.deepEqual((await shown()).map(brief), [['outdated', 'missing', 1], ...usual])
      spoil(paid, {})
      await tellOf(other, paid)
      assert.deepEqual((await shown()).map(brief), usual)
    })

    it('are requested ten at a time, and do not keep other set-aside records waiting', async t => {
      const { account, connector, store, sandbox, source, ...clinic } = await open(t, engine)
      const unfit = clinic.take('paid')
      clinic.spoil(unfit, { total: 'many' })
      await connector.backfill()
      const { system } = source
      await store.transaction(async tx => {
        for (let n = 0; n < 150; n++)
          await tx.setAside(
            { system, kind: 'refused', id: `in_gone${n}`, reason: 'no_customer', due_at: n },
            n,
          )
      })
      clinic.spoil(unfit, {})
      const before = Number(sandbox.requests.get('retrieve_invoice') ?? 0)
      await connector.retrySetAside('all')
      assert.deepEqual(await store.listSetAside(9, system, { kind: 'invoice' }), [])
      assert.equal(Number(sandbox.requests.get('retrieve_invoice')) - before, 11)
      const gone = (await store.listSetAside(1_000, system)).filter(({ id }) => id.startsWith('in_gone'))
      assert.equal(gone.length, 140)
      assert.equal((await readAll(store)).length, truthOf(account).length)
    })
  })
