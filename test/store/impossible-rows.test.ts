/** What no code of ours writes, the schema refuses: from whatever program it comes. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { openWriteStore } from '../../src/store/engines.ts'
import { engines, runSql } from '../support/databases/engines.ts'
import { makeRecord } from '../support/worlds/records.ts'

/** A statement by somebody who knows the tables; the store has one open invoice. */
const impossible = {
  'a status that is none': "UPDATE fatura.invoices SET status = 'payed'",
  'an answer before its question': 'UPDATE fatura.invoices SET answered_stamp = observed_stamp - 1',
  'credits below nothing': 'UPDATE fatura.invoices SET credited_cents = -1',
  'less than nothing to pay': 'UPDATE fatura.invoices SET to_pay_cents = -1',
  'less than nothing in favour': 'UPDATE fatura.invoices SET in_favour_cents = -1',
  'a change of no kind': "UPDATE fatura.changes SET kind = 'sent'",
  'a commit of nothing': 'UPDATE fatura.commits SET n = 0',
  'a feed that is pruned beyond its end': 'UPDATE fatura.feed SET pruned_seq = last_seq + 1',
  'a counter of no status':
    "INSERT INTO fatura.counters VALUES ('cus_ana', '2026-01', 'payed', 'eur', '-', 1, 1)",
  'a link in no state':
    "INSERT INTO fatura.links (customer_id, invoice_id, state, claim) VALUES ('cus_b', 'in_2', 'sent', '{}')",
  'a journal entry without an outcome':
    "INSERT INTO fatura.journal VALUES ('cus_ana', 'in_1', 'evt_1', 'invoice.paid', 1, 1, 'lost', '')",
  'a document missed less than never':
    'INSERT INTO fatura.documents (id, misses, observed_stamp) VALUES (1, -1, 1)',
  'a record that was never tried':
    "INSERT INTO fatura.set_aside VALUES ('stripe', 'invoice', 'in_1', 'no total', 0, NULL, 1, 1, 0)",
  'an outgoing webhook in no state': `INSERT INTO fatura.outgoing_webhooks
    (id, url, secret, private_key, cursor, state, attempts, created_at) VALUES ('wh_1', 'u', 's', 'k', 0, 'on', 0, 1)`,
  'a second end of the feed': 'INSERT INTO fatura.feed (last_seq, pruned_seq) VALUES (0, 0)',
  'a second life': "INSERT INTO fatura.freshness (synced_at, life) VALUES (1, 'another')",
  'a store without a life': 'UPDATE fatura.freshness SET life = NULL',
  'a second last observation': 'INSERT INTO fatura.observation (last_stamp) VALUES (0)',
  'a second lease': 'INSERT INTO fatura.lease (holder, epoch, beats) VALUES (NULL, 0, 0)',
}

/** Of SQLite alone: on PostgreSQL, roles have no right to it. */
const impossibleInFiles = {
  'a flag that is neither': 'UPDATE fatura.customers SET counted = 2',
  'no end of the feed': 'DELETE FROM fatura.feed',
  'no freshness': 'DELETE FROM fatura.freshness',
  'no last observation': 'DELETE FROM fatura.observation',
  'no lease': 'DELETE FROM fatura.lease',
}

async function createRunner(t: TestContext, url: string): Promise<(sql: string) => Promise<unknown>> {
  const store = await openWriteStore(url)
  await store.transaction(tx => tx.saveInvoices([makeRecord({ id: 'in_1', status: 'open' })]))
  await store.close()
  if (!url.startsWith('sqlite:')) return sql => runSql(url, sql)
  const db = new DatabaseSync(url.slice('sqlite:'.length))
  t.after(() => db.close())
  return async sql => db.exec(sql.replaceAll('fatura.', ''))
}

for (const engine of engines)
  describe(`the schema on ${engine.name}`, () => {
    it('refuses values and duplicate rows that no code writes', async t => {
      const run = await createRunner(t, await engine.createStore(t))
      const files = engine.name === 'sqlite' ? impossibleInFiles : {}
      for (const [what, sql] of Object.entries({ ...impossible, ...files }))
        await assert.rejects(run(sql), /constraint|stays|violates/i, what)
    })
  })
