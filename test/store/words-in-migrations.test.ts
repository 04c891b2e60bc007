/** A released migration never changes: words of the code that stand in one must be those of the code still. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { changeKinds } from '../../src/domain/change.ts'
import { claimedStates, openDocumentStatuses } from '../../src/domain/document.ts'
import { invoiceStatuses, unsettledStatuses } from '../../src/domain/invoice.ts'
import { webhookStates } from '../../src/store/change-store.ts'
import { journalOutcomes } from '../../src/store/document-store.ts'
import { schema as ofPostgres } from '../../src/store/postgres/schema.ts'
import { schema as ofSqlite } from '../../src/store/sqlite/migrations.ts'

for (const [engine, { migrations }] of [
  ['sqlite', ofSqlite],
  ['postgres', ofPostgres],
] as const) {
  /** The quoted words of what was last created under a name. */
  const wordsOf = (created: string): string[] => {
    const sql = migrations.map(({ sql }) => sql).join('\n')
    const found = [...sql.matchAll(new RegExp(`CREATE ${created}\\b[^;]*;`, 'g'))].at(-1)?.[0] ?? ''
    return [...found.matchAll(/'([^']*)'/g)].map(match => match[1] ?? '')
  }

  describe(`the migrations of ${engine}`, () => {
    test('have indexes for exactly the statuses that can still change', () => {
      assert.deepEqual(wordsOf('INDEX invoices_unsettled'), unsettledStatuses)
      assert.deepEqual(wordsOf('INDEX documents_open'), openDocumentStatuses)
    })

    test('allow the same words in a column as the code', () => {
      const sql = migrations.map(({ sql }) => sql).join('\n')
      const checks = [...sql.matchAll(/(\w+) [^,\n]*CHECK \(\1 IN \(('[^)]*)\)\)/g)]
      const found = checks.map(([, column, list = '']) => [column, list.match(/\w+/g)])
      assert.deepEqual(found, [
        ['status', invoiceStatuses],
        ['kind', changeKinds],
        ['status', invoiceStatuses],
        ['state', claimedStates],
        ['outcome', journalOutcomes],
        ['state', webhookStates],
      ])
    })
  })
}
