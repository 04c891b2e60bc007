/** A reader whose server turns out to be older than what was read before: 503, until the newer one is back or is given up. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { engines } from '../support/databases/engines.ts'
import { changeRows } from '../support/databases/store-rows.ts'
import { makeRecord } from '../support/worlds/records.ts'
import { startService } from '../support/worlds/service.ts'
import { stopClock } from '../support/worlds/stopped-clock.ts'

for (const engine of engines.filter(({ name }) => name === 'postgres'))
  describe(`an older copy of a database server, on ${engine.name}`, () => {
    it('leads to 503 until the newer server is back or the store begins a new life', async t => {
      const service = await startService(t, engine, { records: [makeRecord({ id: 'in_1' })] })
      const clock = stopClock(t)
      // The freshness is read twice a second.
      const statusLater = async () => {
        await clock.pass(1_000)
        const { status, json } = await service.list()
        return status === 503 ? `503 ${json.error.code}` : status
      }
      const moveFeed = (by: string) =>
        changeRows(service.url, `UPDATE fatura.feed SET last_seq = last_seq ${by}, pruned_seq = 0`)
      assert.equal(await statusLater(), 200)
      await moveFeed('- 1')
      assert.equal(await statusLater(), '503 unavailable')
      assert.equal(await statusLater(), '503 unavailable')
      await moveFeed('+ 1')
      assert.equal(await statusLater(), 200)
      await moveFeed('- 1')
      assert.equal(await statusLater(), '503 unavailable')
      await service.store.renewLife()
      assert.equal(await statusLater(), 200)
    })
  })
