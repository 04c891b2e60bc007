import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { kindNames, kinds, otherTables } from '../../src/store/contents.ts'
import { checkTarget, copyStore } from '../../src/store/copy-store.ts'
import { openOperatorStore, openWriteStore } from '../../src/store/engines.ts'
import { createCli, eventually } from '../support/clients/cli.ts'
import { engines } from '../support/databases/engines.ts'
import { lock } from '../support/databases/own-postgres.ts'
import { changeRows, createFilledStore, digestOf, readRows } from '../support/databases/store-rows.ts'
import { makeLine, makeRecord } from '../support/worlds/records.ts'

const tablesOf = {
  sqlite: "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name",
  postgres:
    "SELECT relname AS name FROM pg_class WHERE relnamespace = 'fatura'::regnamespace AND relkind = 'r' ORDER BY 1",
}
const columnsOf = {
  sqlite: (table: string) => `SELECT name FROM pragma_table_info('${table}')`,
  postgres: (table: string) =>
    `SELECT attname AS name FROM pg_attribute WHERE attrelid = 'fatura.${table}'::regclass AND attnum > 0`,
}

/** What a table holds beside what is carried over, since it follows from that. */
const derivedColumns: Record<string, readonly string[]> = {
  invoices: [
    ...['issued_at', 'status', 'ix_status', 'currency', 'total_cents'],
    ...['search_text', 'long_text', 'search_ids', 'credited_cents'],
    ...['due_date', 'to_pay_cents', 'in_favour_cents', 'expanded_document', 'expanded_payment'],
  ],
  observation: ['only_one'],
}

describe('the inventory of a store', () => {
  for (const engine of ['sqlite', 'postgres'] as const)
    test(`names every table and every column of ${engine}`, async t => {
      const url = (await engines.find(({ name }) => name === engine)?.createStore(t)) ?? ''
      const tables = (await readRows(url, tablesOf[engine])).map(({ name }) => String(name))
      const carried = kindNames.flatMap(name =>
        kinds[name].tables.map(table => [table, kinds[name]] as const),
      )
      const known = new Set<string>([...carried.map(([table]) => table), ...Object.keys(otherTables)])
      assert.deepEqual(
        tables.filter(table => !known.has(table)),
        [],
        'a table is neither carried over nor said to be made from others',
      )
      for (const [table, { columns }] of carried) {
        assert.ok(tables.includes(table), table)
        const found = (await readRows(url, columnsOf[engine](table))).map(({ name }) => String(name))
        const others = found.filter(
          name => !(columns as readonly string[]).includes(name) && !derivedColumns[table]?.includes(name),
        )
        // The lines' invoice is the invoice itself.
        assert.deepEqual(others, table === 'invoice_lines' ? ['invoice_id'] : [], table)
      }
    })
})

async function openBoth(t: TestContext, from: 'sqlite' | 'postgres') {
  const source = await createFilledStore(t, from)
  const other = engines.find(({ name }) => name !== from)
  return { cli: await createCli(t), source, target: (await other?.createStore(t)) ?? '' }
}

/** As `fatura copy` does, within this process: where another copy is what a test looks at. */
async function copyHere(source: string, target: string): Promise<void> {
  const [from, to] = [await openOperatorStore(source), await openWriteStore(target)]
  try {
    await checkTarget(from, to, () => {})
    await copyStore(from, to, () => {})
  } finally {
    await to.close()
    await from.close()
  }
}

const waitingForLocks =
  "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"

describe('fatura copy', { concurrency: 2 }, () => {
  for (const from of ['sqlite', 'postgres'] as const) {
    test(`copies the whole store from ${from} and compares it, and a second run writes nothing`, async t => {
      const { cli, source, target } = await openBoth(t, from)
      await changeRows(
        source,
        `INSERT INTO fatura.tombstones (customer_id, id, observed_stamp, answered_stamp) VALUES ('cus_big', 'in_gone', 7, 8);
         INSERT INTO fatura.bound_accounts (system, account, bound_at) VALUES ('stripe', 'acct_1', 5);
         INSERT INTO fatura.set_aside (system, kind, id, reason, asked_stamp, due_at, first_at, last_at, tries)
           VALUES ('stripe', 'invoice', 'in_odd', 'has no total', 4, 5, 1, 2, 3);
         INSERT INTO fatura.keys (kid, name, x, customers, created_at, revoked_at)
           VALUES ('key_1', 'shop', 'AAAA', ${from === 'sqlite' ? `'["cus_big"]'` : `'{cus_big}'`}, 1, NULL), ('key_2', 'old', 'BBBB', NULL, 1, 2);
         INSERT INTO fatura.outgoing_webhooks (id, url, customer_ids, secret, private_key, cursor, state, attempts, created_at)
           VALUES ('wh_1', 'https://x.example/', '["cus_big"]', 'whsec_AAAA', 'AAAA', 7, 'active', 1, 1)`,
      )
      const first = await cli.run(['copy', source, target])
      assert.equal(first.code, 0, first.stderr)
      assert.match(
        first.stdout,
        /^Copied: \d+ written, \d already there, 0 removed .*\nCompared, equal on both sides: /,
      )
      const [left, right] = [await digestOf(source), await digestOf(target)]
      assert.deepEqual(right, left)
      for (const name of kindNames)
        assert.ok(left.counts[name] > 0, `the source has no ${kinds[name].names[1]}`)
      const again = await cli.run(['copy', source, target])
      assert.match(again.stdout, /^Copied: 0 written, \d+ already there, 0 removed/, again.stderr)

      const stamps = 'SELECT last_stamp FROM fatura.observation'
      assert.equal(
        String((await readRows(target, stamps))[0]?.last_stamp),
        String((await readRows(source, stamps))[0]?.last_stamp),
      )
      const fresh = 'SELECT synced_at FROM fatura.freshness'
      assert.equal(
        String((await readRows(target, fresh))[0]?.synced_at),
        String((await readRows(source, fresh))[0]?.synced_at),
      )
      const scopes = "SELECT customer_id FROM fatura.scopes WHERE id = 'key_1'"
      assert.deepEqual(
        (await readRows(target, scopes)).map(row => row.customer_id),
        ['cus_big'],
        'what follows from the keys was made again',
      )
      const store = await openWriteStore(target)
      assert.equal(await store.checkCounts(), 0, 'what follows from the invoices was made again')
      await store.close()
    })

    test(`from ${from} keeps a token revoked that is revoked on either side`, async t => {
      const { cli, source, target } = await openBoth(t, from)
      await copyHere(source, target)
      const ids = (await readRows(source, 'SELECT id FROM fatura.tokens WHERE revoked_at IS NULL')).map(row =>
        String(row.id),
      )
      assert.equal(ids.length, 1)
      const revoke = `UPDATE fatura.tokens SET revoked_at = 9 WHERE id = '${ids[0]}'`
      await changeRows(target, revoke)
      const again = await cli.run(['copy', source, target])
      assert.equal(again.code, 0, again.stderr)
      const active = 'SELECT id FROM fatura.tokens WHERE revoked_at IS NULL'
      assert.deepEqual(await readRows(target, active), [])

      // Both are as they were after the first copy.
      await changeRows(target, `UPDATE fatura.tokens SET revoked_at = NULL WHERE id = '${ids[0]}'`)
      assert.equal((await readRows(target, active))[0]?.id, ids[0])
      await changeRows(source, revoke)
      assert.equal((await cli.run(['copy', source, target])).code, 0)
      assert.deepEqual(await readRows(target, active), [])
    })

    test(`from ${from} refuses a target with other records before the first write`, async t => {
      const { cli, source, target } = await openBoth(t, from)
      for (const [table, sql, told] of [
        ['tokens', "(id, name, hash, created_at) VALUES ('fat_x', 'x', 'x', 1)", '1 token'],
        ['keys', "(kid, name, x, created_at) VALUES ('key_x', 'x', 'x', 1)", '1 key of links'],
        ['documents', '(id, misses, observed_stamp) VALUES (77, 0, 1)', '1 document'],
        ['bound_accounts', "(system, account, bound_at) VALUES ('stripe', 'acct_2', 1)", '1 account'],
      ] as const) {
        await changeRows(target, `INSERT INTO fatura.${table} ${sql}`)
        const before = await digestOf(target)
        const message = `Nothing was copied: the target holds ${told} that the source does not. Copy into an empty store.`
        if (table === 'tokens') {
          const { code, stdout, stderr } = await cli.run(['copy', source, target])
          assert.deepEqual([code, stdout, stderr], [1, '', `fatura: ${message}\n`])
        } else await assert.rejects(copyHere(source, target), { message })
        assert.deepEqual(await digestOf(target), before)
        await changeRows(target, `DELETE FROM fatura.${table}`)
      }
    })

    test(`from ${from} brings later changes and deletions of the source with a second copy`, async t => {
      const { cli, source, target } = await openBoth(t, from)
      await copyHere(source, target)
      const store = await openWriteStore(source)
      const made = makeRecord({ customer_id: 'cus_big', number: 'nº 7 "é" \\' }, [makeLine()])
      await store.transaction(async tx => {
        await tx.saveInvoices([made])
        await tx.deleteInvoice('cus_big', 'in_big0003')
      })
      await store.close()
      const again = await cli.run(['copy', source, target])
      assert.equal(again.code, 0, again.stderr)
      assert.match(again.stdout, /, 1 removed /)
      assert.deepEqual(await digestOf(target), await digestOf(source))
    })
  }

  test('continues when it is run again after a kill, and both stores end equal', async t => {
    const cli = await createCli(t)
    const [source, target] = await Promise.all(engines.map(engine => engine.createStore(t)))
    const store = await openWriteStore(String(source))
    await store.transaction(tx =>
      tx.saveInvoices(Array.from({ length: 4_000 }, (_, i) => makeRecord({ customer_id: `cus_${i % 50}` }))),
    )
    await store.close()
    // At the beginning, with some of the invoices written, and with most of them.
    for (const held of [
      'LOCK TABLE fatura.invoices IN ACCESS EXCLUSIVE MODE',
      "INSERT INTO fatura.customers (customer_id, version) VALUES ('cus_25', 0)",
      "INSERT INTO fatura.customers (customer_id, version) VALUES ('cus_9', 0)",
    ]) {
      const release = await lock(t, String(target), held)
      const program = cli.start(['copy', String(source), String(target)])
      await eventually('it waits for what is locked', async () => {
        assert.equal(program.child.exitCode, null, program.stderr)
        return (await readRows(String(target), waitingForLocks)).length > 0
      })
      assert.equal((await program.stop('SIGKILL')).signal, 'SIGKILL')
      await release()
      t.diagnostic(
        `killed with ${(await readRows(String(target), 'SELECT id FROM fatura.invoices')).length} invoices written`,
      )
    }
    const { code, stdout, stderr } = await cli.run(['copy', String(source), String(target)])
    assert.equal(code, 0, stderr)
    assert.match(stdout, /Compared, equal on both sides: 4000 invoices/)
  })

  test('refuses to copy a store to itself or from a missing store', async t => {
    const cli = await createCli(t)
    assert.match((await cli.run(['copy', 'sqlite:a.db', 'sqlite:a.db'])).stderr, /the same/)
    assert.match(
      (await cli.run(['copy', 'sqlite:a.db', 'sqlite:b.db'])).stderr,
      /There is no database at a\.db/,
    )
    assert.equal((await cli.run(['copy', 'sqlite:a.db'])).code, 2)
    for (const [args, named] of [
      [['a', 'sqlite:b.db'], /^fatura: <from> must be sqlite: and the path/],
      [['sqlite:a.db', 'b'], /^fatura: <to> must be sqlite: and the path/],
    ] as const) {
      const { code, stderr } = await cli.run(['copy', ...args])
      assert.equal(code, 2)
      assert.match(stderr, named)
    }
  })
})
