/** What crosses from a source into the connector: plain data, mapped whole when it was asked for. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { BillingSource, DocumentSource } from '../../src/sources/source.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { startDocuments } from '../support/worlds/documents.ts'
import { assertTrue, startRig } from '../support/worlds/sync.ts'

const [sqlite] = engines as [Engine]

/** Hands over copies, which a closure cannot be part of, and keeps what was answered beside its copy. */
function createBorder() {
  const answers: { answer: unknown; copy: unknown }[] = []
  return {
    async pass<T>(question: Promise<T>): Promise<T> {
      const answer = await question
      const copy = structuredClone(answer)
      answers.push({ answer, copy: structuredClone(answer) })
      return copy
    },
    /** That nothing that was learnt later changed an answer. */
    assertUnchanged() {
      assert.ok(answers.length > 0)
      for (const { answer, copy } of answers) assert.deepEqual(answer, copy)
    },
  }
}

describe('the answer of a source', () => {
  it('about invoices is plain data, which tax rates that are read later do not change', async t => {
    const rig = await startRig(t, sqlite, { invoices: 250, lines: 2, seed: 11 })
    const border = createBorder()
    const source: BillingSource = {
      ...rig.source,
      listInvoices: (...question) => border.pass(rig.source.listInvoices(...question)),
      fetchInvoice: (...question) => border.pass(rig.source.fetchInvoice(...question)),
      listNotifications: (...question) => border.pass(rig.source.listNotifications(...question)),
    }
    const connector = await rig.connect({ source })
    await connector.backfill()
    for (let change = 0; change < 5; change++) rig.account.change('create')
    await connector.catchUp()
    await assertTrue(rig.account, rig.store)
    border.assertUnchanged()
  })

  it('about documents is plain data', async t => {
    const rig = await startDocuments(t, sqlite, { invoices: 40 })
    const border = createBorder()
    const { documentSource: own } = rig
    const source: DocumentSource = {
      ...own,
      listDocuments: (...question) => border.pass(own.listDocuments(...question)),
      fetchDocument: (...question) => border.pass(own.fetchDocument(...question)),
      fetchClient: (...question) => border.pass(own.fetchClient(...question)),
      fetchRelations: (...question) => border.pass(own.fetchRelations(...question)),
    }
    await rig.connector.backfill()
    const sync = await rig.reconnect({ source })
    while ((await sync.sweepMonth()) !== null);
    await sync.refreshOpen()
    border.assertUnchanged()
  })
})
