/** Rows of a store, read and changed beside it. */
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import { exampleDocument } from '../../../src/http/openapi/examples.ts'
import { digestStore } from '../../../src/store/copy-store.ts'
import { openOperatorStore, openWriteStore } from '../../../src/store/engines.ts'
import { makeLine, makeRecord, withDocument } from '../worlds/records.ts'
import { engines, runSql } from './engines.ts'

/** Tables are named with the schema, as in `fatura.streams`, on either engine. */
export async function readRows(url: string, sql: string): Promise<Record<string, unknown>[]> {
  if (!url.startsWith('sqlite:')) return (await runSql(url, sql)).rows
  const db = new DatabaseSync(url.slice('sqlite:'.length))
  try {
    return db.prepare(sql.replaceAll('fatura.', '')).all()
  } finally {
    db.close()
  }
}

export async function changeRows(url: string, sql: string): Promise<void> {
  if (!url.startsWith('sqlite:')) {
    await runSql(url, sql)
    return
  }
  const db = new DatabaseSync(url.slice('sqlite:'.length))
  db.exec(sql.replaceAll('fatura.', ''))
  db.close()
}

/** What a whole store holds, as counts and a hash. */
export async function digestOf(url: string) {
  const store = await openOperatorStore(url)
  try {
    return await digestStore(store, () => {})
  } finally {
    await store.close()
  }
}

/** A store that holds something of every kind that comes from upstream, tokens, and 520 invoices of `cus_big`. */
export async function createFilledStore(t: TestContext, engineName: 'sqlite' | 'postgres'): Promise<string> {
  const url = (await engines.find(({ name }) => name === engineName)?.createStore(t)) ?? ''
  const store = await openWriteStore(url)
  const big = Array.from({ length: 520 }, (_, i) =>
    makeRecord({ id: `in_big${String(i).padStart(4, '0')}`, customer_id: 'cus_big' }),
  )
  const some = Array.from({ length: 54 }, (_, i) => ({
    ...makeRecord({ id: `in_some${i}`, customer_id: `cus_${i % 7}`, ...withDocument, ix_id: 100 + i }, [
      makeLine(),
    ]),
    document: { ...exampleDocument, id: 100 + i },
  }))
  await store.transaction(async tx => {
    await tx.saveInvoices([...big, ...some], 1_000)
    await tx.writeContents('documents', [
      [100, 'settled', 'in_some0', 'pi_1', '2026-03-02', 9, 'PT123456789', '{"id":100}', 0, 1_000],
    ])
    await tx.writeContents('clients', [[9, 'PT123456789', 1_000]])
    await tx.writeContents('relations', [[100, '{"has_qr":true,"documents":[]}', 1_000]])
    await tx.writeContents('links', [['cus_0', 'in_some0', 'synced', 100, 100, '{}', 'A-1']])
    await tx.writeContents('journal', [['cus_0', 'in_some0', 'evt_1', 'invoice.paid', 1, 2, 'applied', '']])
    await tx.writeContents('tokens', [
      ['fat_kept', 'kept', 'aa', '["cus_big"]', 1, null, null],
      ['fat_gone', 'gone', 'bb', null, 1, null, 2],
    ])
    await tx.saveSuccess('import', 1_000)
  })
  await store.close()
  return url
}
