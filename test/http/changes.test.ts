/** The feed of changes over HTTP: cursors, waits, walls. */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { describe, it, type TestContext } from 'node:test'
import { type Change, createClient } from '../../src/sdk/client.ts'
import { engines } from '../support/databases/engines.ts'
import { makeRecord } from '../support/worlds/records.ts'
import { assertError, type Service, startService } from '../support/worlds/service.ts'
import { type StoppedClock, stopClock, until } from '../support/worlds/stopped-clock.ts'

const own = '/api/v1/client/cus_ana/changes'
const all = '/api/v1/changes'

const patient = { timeout: 600_000 }

/** Counts the requests that wait for a change. */
function countWaiting(t: TestContext): () => number {
  let count = 0
  const add = (change: unknown) => {
    count += change as number
  }
  subscribe('fatura:change-waiting', add)
  t.after(() => unsubscribe('fatura:change-waiting', add))
  return () => count
}

/** Time passes until it holds, and no faster than the service answers. */
async function passUntil(clock: StoppedClock, service: Service, holds: () => boolean): Promise<void> {
  while (!holds()) {
    assert.equal((await service.get(own)).status, 200)
    await clock.pass(100)
  }
}

for (const engine of engines)
  describe(`the feed of changes over HTTP on ${engine.name}`, () => {
    it('is read page by page from its beginning, and without a cursor from its end', async t => {
      const service = await startService(t, engine)
      const empty = await service.get(own)
      assert.deepEqual([empty.status, empty.json.changes], [200, []])
      assert.match(empty.json.next, /^[0-9a-f]{12}-0$/)
      const before = Date.now()
      await service.save(makeRecord({ id: 'in_1' }), makeRecord({ id: 'in_2', customer_id: 'cus_bob' }))
      await service.save(makeRecord({ id: 'in_1', status: 'void' }))
      const first = await service.get(`${own}?after=0&limit=1`)
      const [change] = first.json.changes
      assert.deepEqual(
        { ...change, at: null, cursor: null, version: null },
        {
          cursor: null,
          customer_id: 'cus_ana',
          invoice_id: 'in_1',
          kind: 'created',
          version: null,
          at: null,
        },
      )
      assert.ok(Date.parse(change.at) >= before && Date.parse(change.at) <= Date.now())
      assert.equal(first.json.next, change.cursor)
      assert.equal(first.headers['cache-control'], 'no-store')
      const second = await service.get(`${own}?after=${first.json.next}`)
      assert.deepEqual(
        second.json.changes.map(({ kind }: Change) => kind),
        ['updated'],
      )
      // The cursor of the end is the customer's version, as in the list's ETag.
      const end = await service.get(own)
      assert.deepEqual(end.json, { changes: [], next: second.json.next })
      assert.match(String((await service.list()).headers.etag), new RegExp(`-${end.json.next}-cus_ana`))
      const everyone = await service.get(`${all}?after=0`)
      assert.deepEqual(
        everyone.json.changes.map(({ invoice_id, kind }: Change) => `${invoice_id} ${kind}`).toSorted(),
        ['in_1 created', 'in_1 updated', 'in_2 created'],
      )
    })

    it('waits for a change of the token’s own customer, and answers at the time-out', patient, async t => {
      const waiting = countWaiting(t)
      const clock = stopClock(t)
      const service = await startService(t, engine)
      const answered: string[] = []
      const ask = async (path: string) => {
        const { json } = await service.get(path)
        answered.push(path)
        return json
      }
      const waits = [own, all].map(path => ask(`${path}?after=0&wait=25`))
      const others = ask('/api/v1/client/cus_other/changes?after=0&wait=20')
      await until(() => waiting() === 3)
      await service.save(makeRecord({ id: 'in_1' }))
      await passUntil(clock, service, () => answered.length === 2)
      for (const { changes } of await Promise.all(waits)) assert.equal(changes[0].invoice_id, 'in_1')
      const passed = clock.passedMs
      assert.ok(passed < 20_000)
      await passUntil(clock, service, () => answered.length === 3)
      assert.deepEqual((await others).changes, [])
      assert.ok(clock.passedMs >= 20_000, `after ${clock.passedMs} ms`)
    })

    it('accepts a cursor from a clock that was a week ahead', async t => {
      const service = await startService(t, engine)
      t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 7 * 86_400_000 })
      await service.save(makeRecord({ id: 'in_1' }))
      t.mock.timers.reset()
      for (const path of [own, all]) {
        const { changes } = (await service.get(`${path}?after=0`)).json
        const [{ cursor }] = changes
        assert.deepEqual((await service.get(`${path}?after=${cursor}`)).json, { changes: [], next: cursor })
      }
    })

    it('answers 410 for an old cursor, and refuses an invalid one', async t => {
      const service = await startService(t, engine, { records: [makeRecord({ id: 'in_1' })] })
      await service.store.transaction(tx => tx.pruneChanges(Infinity, 100))
      for (const path of [own, all]) {
        const { status, json } = await service.get(`${path}?after=0&wait=25`)
        assert.deepEqual([status, json.error.code], [410, 'cursor_expired'])
        const { next } = (await service.get(path)).json
        assert.equal((await service.get(`${path}?after=${next}`)).status, 200)
      }
      for (const after of ['-1', '1', '0x0', '9'.repeat(30), 'x', '5e0c9a714b2d-', '5E0C9A714B2D-1']) {
        const { status, json } = await service.get(`${own}?after=${after}`)
        assert.deepEqual([status, json.error.param], [400, 'after'])
      }
    })
  })

const [engine] = engines as [(typeof engines)[number]]

describe('requests that wait for changes', () => {
  it(
    'of all customers need a token for all customers, and end with 401 when their token is revoked',
    patient,
    async t => {
      const waiting = countWaiting(t)
      const clock = stopClock(t)
      const service = await startService(t, engine)
      const token = await service.createToken({ customers: ['cus_ana'] })
      assert.equal((await service.get(`${own}?after=0`, { token })).status, 200)
      for (const [path, given] of [
        [all, token],
        ['/api/v1/client/cus_bob/changes', token],
      ]) {
        const { status, json } = await service.get(`${path}?after=0`, { token: given as string })
        assert.deepEqual([status, json.error.code], [403, 'insufficient_scope'])
      }
      assert.equal((await service.get(all, { token: null })).status, 401)
      let status = 0
      void service.get(`${own}?after=0&wait=25`, { token }).then(answer => {
        status = answer.status
      })
      await until(() => waiting() === 1)
      for (const { id } of await service.store.listTokens())
        if (token.includes(id)) await service.store.revokeToken(id, Date.now())
      await passUntil(clock, service, () => status !== 0)
      assert.equal(status, 401)
      assert.ok(clock.passedMs < 25_000, 'before its time was over')
    },
  )

  it('are limited to 100 per token, and a leaving client frees its place', patient, async t => {
    const waitingInAll = countWaiting(t)
    const service = await startService(t, engine)
    const stop = new AbortController()
    const token = await service.createToken()
    const ask = (signal: AbortSignal) =>
      fetch(`${service.address}${own}?after=0&wait=25`, {
        signal,
        headers: { authorization: `Bearer ${token}` },
      })
    const waiting = Array.from({ length: 100 }, () => ask(stop.signal).catch(() => null))
    await until(() => waitingInAll() === 100)
    const status = async () => (await service.get(`${own}?after=0&wait=25`, { token })).status
    assert.equal(await status(), 429)
    stop.abort()
    await Promise.all(waiting)
    await until(() => waitingInAll() === 0)
    await service.save(makeRecord({ id: 'in_2' }))
    assert.equal(await status(), 200)
  })

  it(
    'make room when all places are taken: the oldest one of the token with the most is answered',
    patient,
    async t => {
      const waiting = countWaiting(t)
      const service = await startService(t, engine, { maxWaiting: 4 })
      const [greedy, modest] = [await service.createToken(), await service.createToken()]
      const ask = (token: string) => service.get(`${own}?after=0&wait=25`, { token })
      const answers: number[] = []
      const waits: Promise<unknown>[] = []
      const begin = async (index: number, token: string, count: number) => {
        waits.push(
          ask(token).then(({ status, json }) => {
            assert.deepEqual([status, json.changes.length], [200, answers.length < 2 ? 0 : 1])
            answers.push(index)
          }),
        )
        await until(() => waiting() === count)
      }
      for (let index = 0; index < 4; index++) await begin(index, greedy, index + 1)
      assertError(await ask(greedy), 503, 'unavailable')
      await begin(4, modest, 4)
      await until(() => answers.length === 1)
      await begin(5, modest, 4)
      await until(() => answers.length === 2)
      assert.deepEqual(answers, [0, 1], 'the oldest first')
      for (const token of [greedy, modest]) assertError(await ask(token), 503, 'unavailable')
      await service.save(makeRecord({ id: 'in_2' }))
      await Promise.all(waits)
      assert.deepEqual(answers.toSorted(), [0, 1, 2, 3, 4, 5])
    },
  )

  it('let the client of the SDK follow changes endlessly from a cursor or from now', patient, async t => {
    const waiting = countWaiting(t)
    const service = await startService(t, engine, { records: [makeRecord({ id: 'in_0' })] })
    const client = createClient({ baseUrl: service.address, token: await service.createToken() })
    const seen: string[] = []
    const stop = new AbortController()
    const following = [{ after: '0' }, { customer: 'cus_ana' }].map(async query => {
      for await (const { invoice_id } of client.changes(query, { signal: stop.signal })) {
        seen.push(`${query.after ?? 'now'} ${invoice_id}`)
        if (invoice_id === 'in_9') return
      }
    })
    await until(() => waiting() === 2)
    for (const id of ['in_1', 'in_9']) await service.save(makeRecord({ id }))
    await Promise.all(following)
    stop.abort()
    assert.deepEqual(seen.toSorted(), ['0 in_0', '0 in_1', '0 in_9', 'now in_1', 'now in_9'])
  })
})
