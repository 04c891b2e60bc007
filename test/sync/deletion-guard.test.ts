/** Many drafts that vanish at once, and many documents: held back until somebody lets them through; all else goes on. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { pino } from 'pino'
import { createDocuments, type DocumentAccount } from '../../sandbox/invoicexpress/account.ts'
import { startInvoiceXpressSandbox } from '../../sandbox/invoicexpress/server.ts'
import type { StripeAccount } from '../../sandbox/stripe/account.ts'
import { CliError } from '../../src/cli/terminal/cli-error.ts'
import { defaultRules } from '../../src/domain/link/link.ts'
import { openWriteStore } from '../../src/store/engines.ts'
import { createDeletionGuard } from '../../src/sync/deletion-guard.ts'
import { examineHere } from '../support/checks/examine.ts'
import {
  createSyncWorld,
  fillStore,
  readStatus,
  readStored,
  type SyncWorld,
} from '../support/checks/sync-truth.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { linkedStore, makeDocument, observe } from '../support/worlds/linked-store.ts'

const once = ['sync', '--once']

async function succeed(world: SyncWorld, args: readonly string[], env = {}): Promise<void> {
  const outcome = await world.run(args, { env })
  assert.equal(outcome.code, 0, outcome.stderr)
}

async function open(t: TestContext, engine: Engine): Promise<SyncWorld> {
  return createSyncWorld(t, { invoices: 30, customers: 3, lines: 1, seed: 61 }, await engine.createStore(t))
}

async function draftsOf(world: SyncWorld): Promise<string[]> {
  const { records } = await readStored(world.url)
  return [...records.values()]
    .filter(({ invoice }) => invoice.status === 'draft')
    .map(({ invoice }) => invoice.id)
}

function makeDrafts(account: StripeAccount, count: number): string[] {
  const made: string[] = []
  while (made.length < count) {
    const id = account.change('create')
    if (account.invoices.get(id)?.customer !== null) made.push(id)
  }
  return made
}

async function guardedOf(world: SyncWorld): Promise<{ deletion: number; lost_document: number } | undefined> {
  const { stdout } = await world.run(['status', '--json'])
  const lines = stdout.split('\n').filter(Boolean)
  return lines.map(line => JSON.parse(line)).find(({ kind }) => kind === 'deletion_guard')
}

describe('the deletion guard', { concurrency: 3 }, () => {
  for (const engine of engines) {
    it(`holds back the deletion of many drafts until an operator allows it, on ${engine.name}`, async t => {
      const world = await open(t, engine)
      const { account } = world
      const made = makeDrafts(account, 60)
      await fillStore(world)
      const before = (await draftsOf(world)).length
      const [kept = '', ...gone] = made
      for (const id of gone.slice(0, 35)) account.change('delete', id)
      account.change('finalize', kept)
      const stopped = await world.run(once)
      assert.equal(stopped.code, 1)
      assert.match(
        stopped.stderr,
        /^fatura: The deletion guard holds back .* 15 drafts that are gone .*--let-through\.\n$/,
      )
      assert.equal((await draftsOf(world)).length, before - 1 - 20, '20 may go')
      assert.equal((await readStored(world.url)).records.get(kept)?.invoice.status, 'open')
      assert.deepEqual(await guardedOf(world), { kind: 'deletion_guard', deletion: 15, lost_document: 0 })
      assert.match((await world.run(['status'])).stdout, /The deletion guard holds back .* 15 drafts/)
      const findings = await examineHere({ ...world.env, DATABASE_URL: world.url })
      const { result, detail, next } =
        findings.find(({ check }) => check === 'Deletion guard') ?? assert.fail()
      assert.equal(result, 'FAIL')
      assert.match(detail, /^holds back .* 15 drafts /)
      assert.match(next ?? '', /^First check the key and its account\. /)

      // A restart lets nothing through, nor does a single deletion more.
      account.change('delete', gone[40])
      const receiver = await world.receive()
      await receiver.waitFor(/"step":"rereadUnsettled"/)
      const created = makeDrafts(account, 1)
      world.sandbox.subscribe(receiver.url, world.env.STRIPE_WEBHOOK_SECRET as string)
      account.change('delete', gone[41])
      for (const { status } of await world.sandbox.deliver({ since: account.events.length - 2 }))
        assert.equal(status, 200)
      await receiver.stop()
      assert.ok((await readStored(world.url)).records.has(created[0] as string))
      assert.equal((await readStatus(world.url)).held.deletion, 17)

      await succeed(world, [...once, '--let-through'])
      assert.deepEqual((await readStatus(world.url)).held, { deletion: 0, lost_document: 0 })
      const drafts = await draftsOf(world)
      for (const id of [...gone.slice(0, 35), gone[40], gone[41]]) assert.ok(!drafts.includes(id as string))
      account.change('delete', gone[45])
      await fillStore(world)
      assert.ok(!(await draftsOf(world)).includes(gone[45] as string))
    })

    it(`allows only the plausible number of deletions over simultaneous transactions, on ${engine.name}`, async t => {
      const store = await openWriteStore(await engine.createStore(t))
      t.after(() => store.close())
      const guard = await createDeletionGuard(store, pino({ level: 'silent' }), false)
      // With all connections open, the first ones really ask at once.
      await Promise.all(Array.from({ length: 5 }, () => store.transaction(tx => tx.countAtRisk('deletion'))))
      const asked = Array.from({ length: 30 }, (_, i) =>
        store.transaction(tx => guard.allows(tx, 'deletion', [{ customer_id: `cus_${i}`, id: 'in_1' }])),
      )
      const allowed = (await Promise.all(asked)).filter(Boolean).length
      const held = await store.listSetAside(99, 'deletion_guard', { kind: 'deletion' })
      assert.deepEqual([allowed, held.length], [20, 10])
    })

    it(`keeps the links of documents whose clients all get another tax ID, unless other invoices own them: ${engine.name}`, async t => {
      const store = await openWriteStore(await engine.createStore(t))
      t.after(() => store.close())
      const guard = await createDeletionGuard(store, pino({ level: 'silent' }), false)
      const { apply, save, saveClient, ties } = linkedStore(store, defaultRules, guard)
      const ids = Array.from({ length: 25 }, (_, index) => 100 + index)
      const taxId = (ix_id: number) => `PT000000${ix_id}`
      await save(...ids.map(id => makeDocument(id, { client_id: id })))
      await apply(
        ...ids.map(ix_id => {
          const customer = { customer_id: `cus_${ix_id}`, customer_tax_id: taxId(ix_id) }
          return observe({ id: `in_${ix_id}`, ...customer }, { ix_id })
        }),
      )
      for (const id of ids) await saveClient(id, '555555555')
      const kept = Object.values(await ties()).filter(ix_id => ix_id !== null)
      const held = await store.listSetAside(99, 'deletion_guard', { kind: 'lost_document' })
      assert.deepEqual([kept, held.length], [ids.slice(20), 5])

      const owner = { id: 'in_owner', customer_id: 'cus_owner', customer_tax_id: 'PT555555555' }
      await apply(observe(owner, { ix_id: 124 }))
      const { in_owner, in_124, in_123 } = await ties()
      assert.deepEqual({ in_owner, in_124, in_123 }, { in_owner: 124, in_124: null, in_123: 123 })
    })

    it(`keeps documents that disappear all at once until an operator releases them, on ${engine.name}`, async t => {
      const world = await createSyncWorld(
        t,
        { invoices: 80, lines: 1, seed: 62, days: 90 },
        await engine.createStore(t),
      )
      const documents = createDocuments(world.account)
      const ix = await startInvoiceXpressSandbox({ documents, apiKey: 'ixKey' })
      t.after(() => ix.close())
      const env = {
        INVOICEXPRESS_API_KEY: 'ixKey',
        INVOICEXPRESS_API_BASE: ix.address,
        INVOICEXPRESS_ACCOUNT: 'ana',
      }
      const fill = () => fillStore(world, { account: 'ana', apiKey: 'ixKey', base: ix.address })
      await fill()
      const synced = await countSynced(world)
      assert.ok(synced > 40, `${synced}`)
      removeAll(documents)
      // Missed once, missed twice and held back, and still held back.
      await fill()
      for (let times = 0; times < 2; times++) await assert.rejects(fill(), CliError)
      const left = await countSynced(world)
      assert.ok(left >= synced - 20, `${left} of ${synced}`)
      assert.equal((await readStatus(world.url)).held.lost_document, left)

      await succeed(world, [...once, '--let-through'], env)
      assert.equal(await countSynced(world), 0)
      assert.deepEqual((await readStatus(world.url)).held, { deletion: 0, lost_document: 0 })
    })
  }
})

async function countSynced(world: SyncWorld): Promise<number> {
  const { records } = await readStored(world.url)
  return [...records.values()].filter(({ invoice }) => invoice.ix_sync_state === 'synced').length
}

function removeAll(documents: DocumentAccount): void {
  for (const id of [...documents.documents.keys()]) documents.change('vanish', id)
}
