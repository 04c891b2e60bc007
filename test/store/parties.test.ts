/** What an invoice is found by of whom it is made out to goes away with the last invoice that is made out so. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { searchWords } from '../../src/store/read-model/search.ts'
import { engines, runSql } from '../support/engines.ts'
import { makeRecord } from '../support/records.ts'

async function readParties(url: string): Promise<string[]> {
  const sql = 'SELECT text FROM parties ORDER BY text'
  if (!url.startsWith('sqlite:'))
    return (await runSql(url, `SET search_path = fatura; ${sql}`).then(results => [results].flat()))
      .flatMap(({ rows }) => rows)
      .map(({ text }) => text)
  const db = new DatabaseSync(url.slice('sqlite:'.length))
  const texts = db
    .prepare(sql)
    .all()
    .map(({ text }) => String(text))
  db.close()
  return texts
}

/** The folded text holds the tax id as it was given, but for its separators. */
const holds = (parties: readonly string[], text: string) => parties.some(party => party.includes(text))

for (const engine of engines)
  describe(`parties on ${engine.name}`, () => {
    test('go with their last invoice, when it is deleted or made out to another; others stay', async t => {
      const url = await engine.createStore(t)
      const [store, reader] = [await openWriteStore(url), await openReadStore(url)]
      t.after(() => Promise.all([store.close(), reader.close()]))
      const found = async (q: string) =>
        (await reader.listInvoices({ customer_id: 'cus_ana', page: 1, page_size: 10, words: searchWords(q) }))
          .total
      const save = (...records: ReturnType<typeof makeRecord>[]) =>
        store.transaction(tx => tx.saveInvoices(records))
      const old = { display_name: 'Maria Antiga', customer_tax_id: 'PT111111111' }
      await save(
        makeRecord({ id: 'in_1', ...old }),
        makeRecord({ id: 'in_2', ...old }),
        makeRecord({ id: 'in_3', customer_id: 'cus_bob', ...old }),
      )
      assert.equal((await readParties(url)).length, 2)

      await save(makeRecord({ id: 'in_1', display_name: 'Nova', customer_tax_id: 'PT222222222' }))
      assert.ok(holds(await readParties(url), 'mariaantiga'), 'in_2 is still made out so')
      assert.deepEqual([await found('maria antiga'), await found('nova')], [1, 1])

      await save(makeRecord({ id: 'in_2', display_name: 'Nova', customer_tax_id: 'PT222222222' }))
      assert.equal(await found('maria antiga'), 0)
      assert.equal((await readParties(url)).filter(text => text.includes('mariaantiga')).length, 1, 'Bob’s')

      await store.transaction(tx => tx.deleteInvoice('cus_bob', 'in_3'))
      assert.ok(!holds(await readParties(url), 'mariaantiga'))
      assert.ok(!holds(await readParties(url), '111111111'))
      await store.transaction(async tx => {
        await tx.deleteInvoice('cus_ana', 'in_1')
        await tx.deleteInvoice('cus_ana', 'in_2')
      })
      assert.deepEqual(await readParties(url), [])
    })

    test('a party that is left and taken up again within one transaction stays', async t => {
      const url = await engine.createStore(t)
      const store = await openWriteStore(url)
      t.after(() => store.close())
      const [one, other] = [
        makeRecord({ id: 'in_1', display_name: 'Uma' }),
        makeRecord({ id: 'in_1', display_name: 'Outra' }),
      ]
      await store.transaction(tx => tx.saveInvoices([one]))
      await store.transaction(async tx => {
        await tx.saveInvoices([other])
        await tx.saveInvoices([one])
      })
      assert.equal((await readParties(url)).length, 1)
      assert.ok(holds(await readParties(url), 'uma'))
    })

    test('of a large customer too; and what was left behind before is counted and repaired', async t => {
      const url = await engine.createStore(t)
      const store = await openWriteStore(url)
      t.after(() => store.close())
      const records = Array.from({ length: 600 }, (_, i) =>
        makeRecord({ id: `in_${i}`, display_name: i === 7 ? 'Rara' : 'Ana Lima' }),
      )
      await store.transaction(tx => tx.saveInvoices(records))
      await store.transaction(tx => tx.deleteInvoice('cus_ana', 'in_7'))
      assert.ok(!holds(await readParties(url), 'rara'))
      assert.equal(await store.checkCounts(), 0)
      const left =
        "INSERT INTO parties (customer_id, party_id, text) VALUES ('cus_ana', 1, 'left'), ('cus_gone', 1, 'gone')"
      if (engine.name !== 'sqlite') await runSql(url, `SET search_path = fatura; ${left}`)
      else {
        const db = new DatabaseSync(url.slice('sqlite:'.length))
        db.exec(left)
        db.close()
      }
      assert.equal(await store.checkCounts(), 2)
      assert.equal(await store.repairCounts(), 2)
      assert.equal((await readParties(url)).length, 1)
      assert.equal(await store.checkCounts(), 0)
    })
  })
