/** What a service does while PostgreSQL answers nobody: come back later, in time by a clock of the test's, and never a hang or a leak. */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { describe, it, type TestContext } from 'node:test'
import { createCli, createStoredToken } from '../support/clients/cli.ts'
import { ask } from '../support/clients/load.ts'
import { type Engine, engines, postgresServer } from '../support/databases/engines.ts'
import {
  assertBlip,
  assertCleanEnd,
  assertNoBackend,
  countBackends,
  detail,
  list,
  lock,
  poolSize,
  serve,
  startFreezingProxy,
} from '../support/databases/own-postgres.ts'
import { makeLine, makeRecord } from '../support/worlds/records.ts'
import { type Answer, type Service, startService } from '../support/worlds/service.ts'
import { type StoppedClock, stopClock, until } from '../support/worlds/stopped-clock.ts'

const postgres = engines.find(({ name }) => name === 'postgres') as Engine
const records = Array.from({ length: 30 }, (_, i) => makeRecord({ id: `in_${i}` }, [makeLine()]))
const guard = { timeout: 600_000 }

/** Reads by a key, and those that may take longer. */
const [quick, slow] = [[list, detail], [`${list}?status=paid`]]

/** A service on a store behind a proxy; the clock stands still. */
async function start(t: TestContext) {
  const clock = stopClock(t)
  const url = await postgres.createStore(t)
  const proxy = await startFreezingProxy(t, Number(new URL(postgresServer()).port))
  const service = await startService(
    t,
    { name: postgres.name, createStore: async () => proxy.through(url) },
    { records },
  )
  for (const path of [...quick, ...slow]) assert.equal((await service.get(path)).status, 200)
  return { clock, url, proxy, service }
}

interface TimedAnswer extends Answer {
  path: string
  /** When it came, by the stopped clock. */
  atMs: number
}

/** Asks, and resolves once the service has got all of these requests. */
async function request(clock: StoppedClock, service: Service, paths: readonly string[]) {
  let arrived = 0
  const count = () => void arrived++
  subscribe('http.server.request.start', count)
  const startMs = clock.passedMs
  const answers: TimedAnswer[] = []
  const ended = Promise.all(
    paths.map(async path =>
      answers.push({ path, ...(await service.get(path)), atMs: clock.passedMs - startMs }),
    ),
  )
  await until(() => arrived === paths.length)
  unsubscribe('http.server.request.start', count)
  return { answers, ended }
}

const repeated = (paths: readonly string[], times: number) =>
  Array.from({ length: times }, () => paths).flat()

function assertRefused(answers: readonly TimedAnswer[], boundMs: (path: string) => number): void {
  for (const answer of answers) {
    assert.equal(answer.status, 503, answer.text)
    assertBlip(answer)
    assert.ok(answer.atMs <= boundMs(answer.path), `${answer.path}: after ${answer.atMs} ms`)
  }
}

describe('a PostgreSQL server that does not answer', () => {
  for (const how of ['thaw', 'cut'] as const)
    it(
      `fails every request within 6 s, and serves reads again once the proxy ${how}s its connections`,
      guard,
      async t => {
        const { clock, url, proxy, service } = await start(t)
        proxy.freeze()
        // At first with the connections there are, then with none.
        for (let turn = 0; turn < 2; turn++) {
          const paths = [...repeated([...quick, ...slow], poolSize), '/ready']
          const { answers, ended } = await request(clock, service, paths)
          assert.equal((await service.get('/live')).status, 200)
          await clock.pass(6_000)
          await ended
          assertRefused(answers, path => (quick.includes(path) ? 3_000 : 6_000))
        }
        proxy[how]()
        await until(async () => {
          const answers = await Promise.all([...quick, ...slow].map(path => service.get(path)))
          answers.forEach(assertBlip)
          return answers.every(({ status }) => status === 200)
        })
        await until(async () => (await countBackends(url, 'fatura-api')) <= poolSize)
      },
    )

  it('lets fatura serve end at a signal and close its connections', guard, async t => {
    const url = await postgres.createStore(t)
    const token = await createStoredToken(url)
    const proxy = await startFreezingProxy(t, Number(new URL(postgresServer()).port))
    const api = await serve(await createCli(t), proxy.through(url))
    await until(async () => (await ask(api.address + list, token)).status === 200)
    proxy.freeze()
    assertCleanEnd(await api.stop())
    proxy.cut()
    await assertNoBackend(url)
  })

  it(
    'lets 200 lists wait and refuses more at once with 503 overloaded, without a log line',
    guard,
    async t => {
      const { clock, proxy, service } = await start(t)
      proxy.freeze()
      const { answers, ended } = await request(clock, service, repeated(slow, 300))
      await until(() => answers.length >= 100)
      const refused = answers.slice()
      proxy.thaw()
      await ended
      assert.deepEqual(
        answers.map(({ status }) => status),
        [...Array(100).fill(503), ...Array(200).fill(200)],
      )
      for (const { text, headers } of refused) {
        assert.equal(JSON.parse(text).error.code, 'overloaded')
        assert.equal(headers['retry-after'], '1')
      }
      assert.deepEqual(
        service.logs.filter(line => JSON.parse(line).level >= 40),
        [],
      )
    },
  )

  it('fails reads in time when every table is locked, while /live answers normally', guard, async t => {
    const { clock, url, service } = await start(t)
    const release = await lock(
      t,
      url,
      'LOCK TABLE fatura.invoices, fatura.customers IN ACCESS EXCLUSIVE MODE',
    )
    const { answers, ended } = await request(clock, service, repeated([...quick, ...slow], poolSize))
    assert.equal((await service.get('/live')).status, 200)
    // PostgreSQL itself gives up on them after as long, by its own clock.
    await clock.pass(6_000)
    await ended
    assertRefused(answers, path => (quick.includes(path) ? 3_000 : 6_000))
    await release()
    await until(async () => (await service.get(list)).status === 200)
    const again = await Promise.all(repeated([...quick, ...slow], poolSize).map(path => service.get(path)))
    for (const { status, text } of again) assert.equal(status, 200, text)
    assert.ok((await countBackends(url, 'fatura-api')) <= poolSize)
  })
})
