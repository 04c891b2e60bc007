/** A restored backup gives versions and places in the feed a second time, with other content: nothing of the lost time is believed. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { copyStore } from '../../src/store/copy-store.ts'
import { openOperatorStore, openReadStore, openWriteStore, useStore } from '../../src/store/engines.ts'
import { engines } from '../support/databases/engines.ts'
import { makeRecord } from '../support/worlds/records.ts'
import { startService } from '../support/worlds/service.ts'

const list = '/api/v1/client/cus_ana/invoices'
const etagged = [
  list,
  `${list}?status=paid`,
  '/api/v1/client/cus_ana/summary',
  '/api/v1/client/cus_ana/balance',
]
const feeds = ['/api/v1/client/cus_ana/changes', '/api/v1/changes']

const [bad, good] = [1, 2].map(total_cents => makeRecord({ id: 'in_1', total_cents }))

for (const engine of engines)
  describe(`a restored backup on ${engine.name}`, () => {
    it('begins another life with migrate --restored, in which old ETags and cursors are invalid', async t => {
      // Equal moments give equal versions and places.
      t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
      // Two new stores are one: a backup, and what it was made of.
      const [lost, restored] = [await startService(t, engine), await startService(t, engine)]
      await lost.save(bad as never)
      await restored.store.renewLife()
      await restored.save(good as never)
      for (const path of etagged) {
        const { etag } = (await lost.get(path)).headers
        const headers = { 'if-none-match': String(etag) }
        assert.equal((await lost.get(path, { headers })).status, 304)
        const again = await restored.get(path, { headers })
        assert.equal(again.status, 200, path)
        assert.notEqual(again.headers.etag, etag)
      }
      for (const path of feeds) {
        const { next } = (await lost.get(path)).json
        assert.deepEqual((await lost.get(`${path}?after=${next}`)).json.changes, [])
        for (const wait of [0, 25]) {
          const { status, json } = await restored.get(`${path}?after=${next}&wait=${wait}`)
          assert.deepEqual([status, json.error?.code], [410, 'cursor_expired'])
        }
        assert.equal((await restored.get(`${path}?after=0`)).json.changes.length, 1)
      }
    })

    it('has expired cursors beyond the end of its feed, even without migrate --restored', async t => {
      const [lost, restored] = [await startService(t, engine), await startService(t, engine)]
      await restored.save(makeRecord({ id: 'in_0' }))
      // Places follow the clock. Those of two commits within one of its ticks differ only in one store.
      for (const id of ['in_0', 'in_1', 'in_2']) await lost.save(makeRecord({ id }))
      for (const path of feeds) {
        const { next } = (await lost.get(path)).json
        const { status, json } = await restored.get(`${path}?after=${next}&wait=25`)
        assert.deepEqual([status, json.error?.code], [410, 'cursor_expired'])
      }
    })

    it('ends waiting requests for changes at once when its new life begins', async t => {
      const service = await startService(t, engine, { records: [makeRecord({ id: 'in_1' })] })
      const { next } = (await service.get(feeds[0] as string)).json
      const waiting = service.get(`${feeds[0]}?after=${next}&wait=25`)
      await service.store.renewLife()
      assert.equal((await waiting).status, 410)
    })

    it('begins another life as a copy, in which the source’s cursors are expired', async t => {
      const source = await startService(t, engine, { records: [makeRecord({ id: 'in_1' })] })
      const target = await engine.createStore(t)
      const { next } = (await source.get(feeds[1] as string)).json
      await useStore(openOperatorStore(source.url), from =>
        useStore(openWriteStore(target), to => copyStore(from, to, () => {})),
      )
      await useStore(openReadStore(target), async reader => {
        const [life, seq] = next.split('-')
        assert.notEqual((await reader.readFreshness()).life, life)
        assert.equal(await reader.readChanges(null, Number(seq), 10, life), null)
      })
    })
  })
