/** Sweeps over the documents use the pace that they are given, however slow the answers: they do not wait for one before they ask the next. */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { type Engine, engines } from '../support/databases/engines.ts'
import { startDocuments } from '../support/worlds/documents.ts'
import { type StoppedClock, stopClock } from '../support/worlds/stopped-clock.ts'

/** Twice InvoiceXpress' own pace. An answer takes as long as four requests of it. */
const [perSecond, latencyMs] = [16, 250]

const kinds = { lists: /^\/invoices\.json/, documents: /^\/\w+\/\d+\.json/, clients: /^\/clients\/\d+\.json/ }

/** Of each kind, how many requests the servers of this process had under way at most; until it is stopped. */
function watchRequests() {
  const underWay = new Map<string, number>()
  const most = new Map<string, number>()
  const change = (by: number) => (message: unknown) => {
    const { url = '' } = (message as { request: IncomingMessage }).request
    for (const [kind, pattern] of Object.entries(kinds)) {
      if (!pattern.test(url) || (kind === 'documents' && kinds.clients.test(url))) continue
      const count = (underWay.get(kind) ?? 0) + by
      underWay.set(kind, count)
      most.set(kind, Math.max(most.get(kind) ?? 0, count))
    }
  }
  const [begin, end] = [change(1), change(-1)]
  subscribe('http.server.request.start', begin)
  subscribe('http.server.response.finish', end)
  return {
    most,
    stop() {
      unsubscribe('http.server.request.start', begin)
      unsubscribe('http.server.response.finish', end)
    },
  }
}

/** Lets time pass, by little, until the work is done. */
async function passUntil(clock: StoppedClock, work: Promise<unknown>): Promise<void> {
  let isOver = false
  const ended = work.finally(() => {
    isOver = true
  })
  ended.catch(() => {})
  while (!isOver) await clock.pass(10)
  await ended
}

test('lists, documents and clients are requested while at least three other requests wait for answers', {
  timeout: 600_000,
}, async t => {
  const [sqlite] = engines as [Engine]
  const rig = await startDocuments(t, sqlite, {
    ...{ invoices: 120, customers: 30, documents: { states: 'ordinary' } },
    ...{ ix: { latencyMs }, ixPace: { perSecond } },
  })
  await rig.connector.backfill()
  const [template = assert.fail()] = [...rig.documents.documents.values()].filter(
    ({ status }) => status === 'final',
  )
  const made = Array.from({ length: 1_000 }, (_, index) => 90_000_000 + index)
  for (const id of made) rig.documents.documents.set(id, { ...template, id, reference: null })
  const [early, late] = [
    await rig.reconnect({ fetchesPerRun: 0 }),
    await rig.reconnect({ fetchesPerRun: 20 }),
  ]
  const watched = watchRequests()
  t.after(watched.stop)
  const clock = stopClock(t)
  await passUntil(clock, early.refreshOpen())
  for (const id of made) rig.documents.change('vanish', id)
  await passUntil(clock, late.refreshOpen())
  t.diagnostic(`under way at once, at most: ${JSON.stringify([...watched.most])}`)
  for (const kind of Object.keys(kinds)) assert.ok((watched.most.get(kind) ?? 0) >= 4, kind)
})
