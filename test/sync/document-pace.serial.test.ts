/** Sweeps over the documents use the pace that they are given. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type DocumentRig, startDocuments } from '../support/documents.ts'
import { type Engine, engines } from '../support/engines.ts'

const ordinary = { states: 'ordinary' } as const

describe('the pace', () => {
  const [sqlite] = engines as [Engine]
  /** Twice InvoiceXpress' own, with answers that take half of its time. One after the other, they would make four a second. */
  const [perSecond, latency] = [16, 250]

  /** The rate between the fifth and the last but fifth of so many requests, as a share of the pace. */
  async function measure(
    rig: DocumentRig,
    route: string,
    count: number,
    run: () => Promise<unknown>,
  ): Promise<number> {
    const served = () => rig.ix.requests.get(route) ?? 0
    const before = served()
    const running = run()
    const until = async (wanted: number) => {
      while (served() - before < wanted) await sleep(5)
      return { at: performance.now(), count: served() }
    }
    const [from, to] = [await until(5), await until(count - 5)]
    await running
    return (((to.count - from.count) / (to.at - from.at)) * 1000) / perSecond
  }

  test('is reached to nine tenths although an answer takes four turns: lists, documents and clients', async t => {
    const rig = await startDocuments(t, sqlite, {
      invoices: 250,
      customers: 60,
      documents: ordinary,
      ix: { latency },
      ixPace: { perSecond },
    })
    await rig.connector.backfill()
    const [template = assert.fail()] = [...rig.documents.documents.values()].filter(
      ({ status }) => status === 'final',
    )
    const made = Array.from({ length: 1_800 }, (_, index) => 90_000_000 + index)
    for (const id of made) rig.documents.documents.set(id, { ...template, id, reference: null })
    const listing = await rig.reconnect({ fetchesPerRun: 0 })
    const lists = await measure(rig, 'ix_list', 36, () => listing.refreshOpen())
    for (const id of made) rig.documents.change('vanish', id)
    const rest = await rig.reconnect({ fetchesPerRun: 40 })
    const running = rest.refreshOpen()
    const documents = await measure(rig, 'ix_document', 40, () => sleep(0))
    const clients = await measure(rig, 'ix_client', 36, () => running)
    const shares = { lists, documents, clients }
    t.diagnostic(`achieved/allowed: ${JSON.stringify(shares)}`)
    for (const [what, share] of Object.entries(shares)) assert.ok(share >= 0.9, `${what}: ${share}`)
  })
})
