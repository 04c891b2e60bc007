/** `/ready` knows the store, its schema, and how old the records may be. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { engines } from '../support/databases/engines.ts'
import { changeRows } from '../support/databases/store-rows.ts'
import { assertError, startService } from '../support/worlds/service.ts'
import { stopClock } from '../support/worlds/stopped-clock.ts'

for (const engine of engines)
  describe(`/ready on ${engine.name}`, () => {
    test('is 503 when the records are older than allowed, or were never synchronized', async t => {
      const clock = stopClock(t)
      const service = await startService(t, engine, { readyMaxLagMs: 60_000 })
      const ask = () => service.get('/ready', { token: null })
      const never = await ask()
      assertError(never, 503, 'unavailable')
      assert.match(never.json.error.message, /were never synchronized/)
      const synchronizedAt = (at: number) => service.store.transaction(tx => tx.saveSuccess('import', at))
      await synchronizedAt(Date.now())
      // How fresh the records are is read twice a second.
      await clock.pass(500)
      assert.equal((await ask()).status, 200)
      await clock.pass(59_500)
      assert.equal((await ask()).status, 200)
      await clock.pass(1)
      const late = await ask()
      assertError(late, 503, 'unavailable')
      assert.equal(late.headers['retry-after'], '5')
      assert.equal((await service.get('/live', { token: null })).status, 200)
    })

    test('ignores the age of the records without a configured limit', async t => {
      const service = await startService(t, engine)
      assert.equal((await service.get('/ready', { token: null })).status, 200)
    })

    test('is 503 once another version migrated the store', async t => {
      const service = await startService(t, engine)
      await changeRows(
        service.url,
        service.url.startsWith('sqlite:')
          ? 'PRAGMA user_version = 99'
          : "INSERT INTO fatura.migrations (version, sha256) VALUES (99, 'another')",
      )
      assertError(await service.get('/ready', { token: null }), 503, 'unavailable')
    })
  })
