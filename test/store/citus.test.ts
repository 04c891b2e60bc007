/** What only Citus has, on a real cluster: what is spread where. The suites that loop over all engines run there as well. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Document } from '../../src/domain/document.ts'
import { migrateStore, openReadStore, openWriteStore, readFacts } from '../../src/store/engines.ts'
import { schema } from '../../src/store/postgres/schema.ts'
import { searchWords } from '../../src/store/sql/search.ts'
import type { ReadStore, WriteStore, WriteTransaction } from '../../src/store/store.ts'
import { campaign } from '../support/checks/campaign.ts'
import { createCitusDatabase, skipCitus } from '../support/databases/citus-cluster.ts'
import { postgresServer, runSql } from '../support/databases/engines.ts'
import { startProxy } from '../support/databases/postgres-proxy.ts'
import { makeLine, makeRecord } from '../support/worlds/records.ts'

async function misplaced(url: string): Promise<readonly string[] | null | undefined> {
  return (await readFacts(url)).server?.misplaced
}

const totals = `SELECT (SELECT count(*) FROM fatura.invoices) AS invoices, (SELECT count(*) FROM fatura.customers) AS customers,
  (SELECT sum(total) FROM fatura.customers) AS counted`

describe('fatura migrate on Citus', { skip: skipCitus }, () => {
  test('distributes a new store, and every node knows it', async t => {
    const nodes = await createCitusDatabase(t)
    await migrateStore(nodes[0] as string)
    assert.deepEqual(await misplaced(nodes[0] as string), [])
    for (const node of nodes) {
      assert.deepEqual(await misplaced(node), [])
      const store = await openReadStore(node)
      t.after(() => store.close())
      assert.equal((await store.readSnapshot('cus_ana')).version, 0)
      assert.equal(await store.findToken('none'), null)
    }
  })

  test('leaves nothing behind when it fails, and succeeds once the reason is gone', async t => {
    const [coordinator = '', worker = ''] = await createCitusDatabase(t)
    if (worker === '') return t.skip('the cluster has no worker')
    await runSql(
      worker,
      'SET citus.enable_ddl_propagation = off; CREATE SCHEMA fatura; CREATE TABLE fatura.links (odd integer)',
    )
    await assert.rejects(migrateStore(coordinator), /links/)
    assert.equal((await readFacts(coordinator)).schema, 0)
    await runSql(worker, 'SET citus.enable_ddl_propagation = off; DROP TABLE fatura.links')
    assert.deepEqual(await migrateStore(coordinator), { from: 0, to: schema.migrations.length })
    assert.deepEqual(await misplaced(coordinator), [])
  })

  test('distributes the rows of a store that existed before the extension', async t => {
    const [url = ''] = await createCitusDatabase(t)
    const [first] = schema.migrations
    await runSql(
      url,
      `CREATE SCHEMA fatura;
       CREATE TABLE fatura.migrations (version integer PRIMARY KEY, sha256 text COLLATE "C", rewriting text COLLATE "C");
       ${first?.sql} ${schema.functions?.sql}
       INSERT INTO fatura.migrations (version, sha256) VALUES (0, '${schema.functions?.sha256}'), (1, '${first?.sha256}');
       INSERT INTO fatura.invoices (customer_id, id, issued_at, status, currency, total_cents, search_text, search_ids, summary, observed_stamp, answered_stamp, credited_cents,
           payment, to_pay_cents, in_favour_cents, expanded_document, expanded_payment)
         SELECT 'cus_' || n % 7, 'in_' || n, n, 'paid', 'eur', 1, '', '', '{}', 1, 2, 0, '{}', 0, 0, 'null', '{}' FROM generate_series(1, 30) AS n;
       INSERT INTO fatura.customers (customer_id, version, total) SELECT customer_id, 1, count(*) FROM fatura.invoices GROUP BY 1`,
    )
    const { rows: before } = await runSql(url, totals)
    assert.deepEqual(await migrateStore(url), { from: 1, to: schema.migrations.length })
    assert.deepEqual((await runSql(url, totals)).rows, before)
    assert.deepEqual(await misplaced(url), [])
  })

  test('names a table that is not distributed, and the next run distributes it', async t => {
    const [url = ''] = await createCitusDatabase(t, process.env.TEST_CITUS_TEMPLATE)
    await runSql(url, "SELECT undistribute_table('fatura.journal')")
    await runSql(url, 'DROP FUNCTION fatura.read_version(text)')
    assert.deepEqual(await misplaced(url), ['fatura.journal', 'fatura.read_version()'])
    await migrateStore(url)
    assert.deepEqual(await misplaced(url), ['fatura.read_version()'])
  })

  test('names a table on other shards than its customers’ invoices, and the next run moves it', async t => {
    const [url = ''] = await createCitusDatabase(t, process.env.TEST_CITUS_TEMPLATE)
    const writer = await openWriteStore(url)
    await writer.transaction(tx => tx.saveInvoices([makeRecord({ id: 'in_1' }, [makeLine()])]))
    await writer.close()
    await runSql(
      url,
      `SELECT update_distributed_table_colocation('fatura.invoice_lines', colocate_with => 'none');
       SELECT update_distributed_table_colocation('fatura.document_clients', colocate_with => 'none');
       SELECT create_distributed_function('fatura.read_version(text)', 'p_customer_id', colocate_with => 'fatura.invoice_lines');
       SELECT create_distributed_function('fatura.find_invoice(text,text)', 'p_invoice_id', colocate_with => 'fatura.invoices');
       ALTER FUNCTION fatura.read_sums(text) RESET plan_cache_mode`,
    )
    const named = await misplaced(url)
    await migrateStore(url)
    assert.deepEqual(
      { named, left: await misplaced(url) },
      {
        named: [
          'fatura.invoice_lines',
          'fatura.document_clients',
          'fatura.read_version()',
          'fatura.find_invoice()',
          'fatura.read_sums()',
        ],
        left: [],
      },
    )
    const reader = await openReadStore(url)
    t.after(() => reader.close())
    assert.ok((await reader.findInvoice('cus_ana', 'in_1'))?.lines)
  })

  test('moves all other tables to the shards of the invoices after it distributes the invoices', async t => {
    const [url = ''] = await createCitusDatabase(t, process.env.TEST_CITUS_TEMPLATE)
    await runSql(url, "SELECT undistribute_table('fatura.invoices')")
    assert.ok((await misplaced(url))?.includes('fatura.invoices'))
    await migrateStore(url)
    assert.deepEqual(await misplaced(url), [])
  })
})

/** The commands that Citus sent to other nodes for what `work` asked of a store at this address. */
async function countCommands<Store extends ReadStore | WriteStore>(
  t: TestContext,
  url: string,
  open: (url: string) => Promise<Store>,
  work: (store: Store) => Promise<unknown>,
  isIgnored: (command: string) => boolean = () => false,
): Promise<number> {
  const proxy = await startProxy(t, url)
  const telling = '-c citus.log_remote_commands=on -c client_min_messages=notice'
  const store = await open(`${proxy.url}?options=${encodeURIComponent(telling)}`)
  proxy.answers.length = 0
  await work(store)
  await store.close()
  const [, ...commands] = proxy.answers.join('').split('issuing ')
  return commands.filter(command => !isIgnored(command)).length
}

/** A store that knows how fresh its records are: it asks for that a few times a second, whatever else it is asked. */
async function openKnowing(url: string): Promise<ReadStore> {
  const store = await openReadStore(url)
  await store.readFreshness()
  return store
}

const document: Document = {
  id: 7,
  type: 'Invoice',
  status: 'settled',
  reference: 'in_1',
  number: '6/G',
  date: '2026-03-02',
  total: '123.00',
  currency: 'Euro',
  client_id: 9,
}

describe('writes on Citus', { skip: skipCitus }, () => {
  test('send few commands for one invoice, and fewer commands than customers for many invoices', async t => {
    const [url = ''] = await createCitusDatabase(t, process.env.TEST_CITUS_TEMPLATE)
    const count = (work: (tx: WriteTransaction) => Promise<unknown>) =>
      countCommands(t, url, openWriteStore, store => store.transaction(work))
    const one = makeRecord({ id: 'in_1' }, [makeLine()])
    // The beginning, three for the customer (its row, all that is saved, what is counted), and the end in two phases: the row of
    // the feed lies at the coordinator.
    assert.equal(await count(tx => tx.saveInvoices([one])), 6)
    const renamed = makeRecord({ id: 'in_1', status: 'void', customer_name: 'Rui Reis' }, null)
    assert.equal(await count(tx => tx.saveInvoices([renamed])), 6)
    // Nothing is counted where nothing changed.
    assert.equal(await count(tx => tx.saveInvoices([renamed])), 4)
    const many = Array.from({ length: 500 }, (_, i) => makeRecord({ id: 'in_1', customer_id: `cus_${i}` }))
    const sent = await count(tx => tx.saveInvoices(many))
    assert.ok(sent < many.length, `${sent} commands`)
    t.diagnostic(`${sent} commands for ${many.length} customers`)
    // A document lies once, at one node. It is read first: fields that a list leaves out stay as they are.
    assert.equal(await count(tx => tx.saveDocuments([document], 1)), 4)
    const { rows } = await runSql(url, 'SELECT count(*) AS n FROM fatura.documents')
    assert.equal(Number(rows[0].n), 1)
  })
})

describe('reads on Citus', { skip: skipCitus }, () => {
  test('are one command to one node, whichever node is asked', async t => {
    const nodes = await createCitusDatabase(t, process.env.TEST_CITUS_TEMPLATE)
    const writer = await openWriteStore(nodes[0] as string)
    t.after(() => writer.close())
    const many = Array.from({ length: 600 }, (_, i) =>
      makeRecord({ id: `in_${i}`, customer_id: 'cus_many', issued_at: new Date(i * 36e5).toISOString() }, [
        makeLine(),
      ]),
    )
    await writer.transaction(tx => tx.saveInvoices([makeRecord({ id: 'in_a' }, [makeLine()]), ...many]))
    const sent: number[] = []
    for (const node of nodes)
      for (const customer_id of ['cus_ana', 'cus_many']) {
        const list = { customer_id, page: 1, page_size: 10 }
        const requests: ((store: ReadStore) => Promise<unknown>)[] = [
          store => store.listInvoices(list),
          store => store.listInvoices({ ...list, page: 9 }),
          store => store.listInvoices({ ...list, status: 'open', issued_from: 0 }),
          store => store.listInvoices({ ...list, words: searchWords('ana') }),
          store => store.listInvoices({ ...list, words: searchWords('in_a'), page: 2 }),
          store => store.findInvoice(customer_id, 'in_a'),
          store => store.readSnapshot(customer_id),
          store => store.readSums(customer_id),
          store => store.readOpen(customer_id, '2026-10-28'),
        ]
        // Freshness is asked for again when half a second has passed, as on a slow machine.
        const isFreshness = (command: string) => command.includes('freshness')
        for (const request of requests)
          sent.push(await countCommands(t, node, openKnowing, request, isFreshness))
        // Tokens lie at the coordinator, and so does how fresh the records are.
        const atCoordinator = node === nodes[0] ? 0 : 1
        for (const ask of [
          (store: ReadStore) => store.findToken('none'),
          (store: ReadStore) => store.coversCustomer('none', 'cus_ana'),
          (store: ReadStore) => store.readFreshness(),
        ])
          assert.equal(await countCommands(t, node, openReadStore, ask), atCoordinator)
      }
    assert.ok(
      sent.every(commands => commands <= 1),
      String(sent),
    )
    assert.ok(sent.includes(1), 'no node has all the rows')
  })

  test('show one moment at every node: a version always has the same body during writes', async t => {
    const nodes = await createCitusDatabase(t, process.env.TEST_CITUS_TEMPLATE)
    const writer = await openWriteStore(nodes[0] as string)
    const readers = await Promise.all(nodes.map(openReadStore))
    t.after(() => Promise.all([writer, ...readers].map(store => store.close())))
    const customers = ['cus_ana', 'cus_bob', 'cus_cid', 'cus_dan']
    const bodies = new Map<string, string>()
    const [readsAtLeast, bodiesAtLeast] = [campaign(300, 6_000), campaign(30, 600)]
    let [reads, isOver] = [0, false]
    const writing = (async () => {
      for (let turn = 0; !isOver; turn++)
        await writer.transaction(async tx => {
          const changed = customers.flatMap(customer_id =>
            [turn % 7, turn % 31].map(i =>
              makeRecord({
                id: `in_${i}`,
                customer_id,
                status: turn % 2 ? 'paid' : 'open',
                total_cents: turn,
              }),
            ),
          )
          await tx.saveInvoices(changed)
          await tx.deleteInvoice(customers[turn % 4] as string, `in_${turn % 5}`)
        })
    })()
    const read = async (seed: number) => {
      const reader = readers[seed % readers.length] as (typeof readers)[0]
      for (let i = seed; !isOver; i++) {
        const customer_id = customers[i % 4] as string
        const query = [
          { page: 1, page_size: 10 },
          { page: 2, page_size: 7 },
          { page: 1, page_size: 50, status: 'paid' as const },
          { page: 1, page_size: 50, words: searchWords('in_1') },
        ][(i >> 2) % 4] as { page: number; page_size: number }
        const { version, total, summaries } = await reader.listInvoices({ customer_id, ...query })
        const key = `${customer_id} ${version} ${JSON.stringify(query)}`
        const body = `${total} ${summaries}`
        assert.equal(body, bodies.get(key) ?? body, key)
        bodies.set(key, body)
        isOver ||= ++reads >= readsAtLeast && bodies.size >= bodiesAtLeast
      }
    }
    await Promise.all([writing, ...[0, 1, 2, 3, 5, 7].map(read)])
    t.diagnostic(`${reads} reads of ${bodies.size} bodies`)
  })
})

test('a PostgreSQL without the Citus extension reports no misplaced tables', async () => {
  assert.equal(await misplaced(`${postgresServer()}postgres`), null)
})
