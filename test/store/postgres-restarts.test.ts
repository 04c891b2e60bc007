/** What a service does while PostgreSQL restarts, is busy or falls silent: come back later, in time, and never a hang or a leak. */
import assert from 'node:assert/strict'
import { performance } from 'node:perf_hooks'
import { after, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { campaign, reportFigure } from '../support/campaign.ts'
import { createCli, eventually } from '../support/cli.ts'
import { runSql } from '../support/engines.ts'
import { ask, type Sample, startLoad } from '../support/load.ts'
import { assertWithin } from '../support/machine-speed.ts'
import {
  assertBlip,
  assertCleanEnd,
  assertFewSockets,
  assertNoBackend,
  countBackends,
  countSockets,
  createStore,
  detail,
  figure,
  list,
  lock,
  poolSize,
  serve,
  server,
  startFreezingProxy,
  untilAnswered,
  useOwnPostgres,
  worst,
} from '../support/own-postgres.ts'

useOwnPostgres()

describe('a database restart is a blip', () => {
  let isUp = true
  after(start)

  async function start(): Promise<void> {
    // After a crash the server refuses to start until the last of its old processes has gone.
    for (let turn = 0; !isUp; turn++) {
      isUp = await server.start().then(
        () => true,
        () => false,
      )
      assert.ok(isUp || turn < 50, 'the server does not start')
      if (!isUp) await sleep(50)
    }
  }

  /** Politely, in haste, or as the kernel does when memory runs out. */
  async function stop(how: 'SIGINT' | 'SIGQUIT' | 'SIGKILL'): Promise<void> {
    const { rows } = await runSql(server.url, "SELECT pg_read_file('postmaster.pid') AS text")
    const pid = Number.parseInt(rows[0].text, 10)
    isUp = false
    if (how === 'SIGINT') return server.stop()
    process.kill(pid, how)
    await eventually('the server has gone', () => !isAlive(pid))
  }

  it('under load: only 503 + Retry-After, none over 2 s, 200 again within 2 s, nothing leaked', async t => {
    const bound = campaign(5_000, 2_000)
    const cli = await createCli(t)
    const { url, token } = await createStore()
    const api = await serve(cli, url)
    const socketsAtFirst = await countSockets(api.pid)
    const load = startLoad({
      address: api.address,
      paths: [list, detail, `${list}?q=lima&page_size=5`],
      token,
      loops: 16,
      pause: campaign(60, 4),
      atMost: 50_000,
    })
    t.after(() => load.stop())
    const answered = async (since: number) => {
      let found: Sample | undefined
      await eventually('there is a 200', () => {
        found = load.samples.findLast(({ at, status }) => status === 200 && at >= since)
        return found !== undefined
      })
      return load.samples.find(({ at, status }) => status === 200 && at >= since) as Sample
    }
    await answered(0)

    let slowest = 0
    const chosen = rounds.slice(0, campaign(3, rounds.length))
    for (const [index, how] of chosen.entries()) {
      const before = load.samples.length
      await stop(how)
      await sleep(300)
      await start()
      const accepting = performance.now()
      const recovery = (await answered(accepting)).at - accepting
      const during = load.samples.slice(before)
      const refused = during.filter(({ status }) => status !== 200).length
      t.diagnostic(
        `restart ${index + 1} (${how}): 200 after ${figure(recovery)}, ${refused} of ${during.length} refused, worst ${figure(worst(during))}`,
      )
      assertWithin(recovery, bound)
      slowest = Math.max(slowest, recovery)
      assert.ok(refused > 0, 'the restart was noticed')
      await sleep(200)
    }

    await load.stop()
    for (const sample of load.samples) assertBlip(sample)
    reportFigure(
      t,
      'R6',
      `${chosen.length} restarts under ${load.samples.length} requests: 200 after ${figure(slowest)} at most, longest request ${figure(worst(load.samples))}`,
    )
    assertWithin(worst(load.samples), bound)
    assert.ok((await countBackends(url, 'fatura-api')) <= poolSize)
    await assertFewSockets(api.pid, socketsAtFirst)
    assertCleanEnd(await api.stop())
    await assertNoBackend(url)
  })
})

const rounds = [
  ...(['SIGINT', 'SIGKILL', 'SIGQUIT', 'SIGINT', 'SIGKILL'] as const),
  ...(['SIGQUIT', 'SIGINT', 'SIGKILL', 'SIGINT', 'SIGINT'] as const),
]

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('a database that answers nobody', { concurrency: true }, () => {
  for (const how of ['thaw', 'cut'] as const)
    it(`falls silent behind the network: 503 within 7 s, and 200 again after a ${how}`, async t => {
      const cli = await createCli(t)
      const { url, token } = await createStore()
      const proxy = await startFreezingProxy(t, server.port)
      const api = await serve(cli, proxy.through(url))
      const socketsAtFirst = await countSockets(api.pid)
      const burst = () =>
        Promise.all(
          Array.from({ length: 3 * poolSize }, (_, i) => ask(api.address + (i % 2 ? list : detail), token)),
        )
      for (const { status, text } of await burst()) assert.equal(status, 200, text)
      proxy.freeze()
      // At first with the connections there are, then with none.
      const samples = [...(await burst()), ...(await burst())]
      for (const sample of samples) assertBlip(sample)
      for (const { status } of samples) assert.equal(status, 503)
      assertWithin(worst(samples), 7_000)
      proxy[how]()
      const recovery = await untilAnswered(api.address + list, token)
      t.diagnostic(`${how}: worst ${figure(worst(samples))}, 200 again after ${figure(recovery)}`)
      assertWithin(recovery, campaign(5_000, 2_000))
      await assertFewSockets(api.pid, socketsAtFirst)

      proxy.freeze()
      const asked = performance.now()
      // Only a hang reaches it.
      const giveUp = setTimeout(() => api.child.kill('SIGKILL'), 60_000)
      assertCleanEnd(await api.stop())
      clearTimeout(giveUp)
      const ended = performance.now() - asked
      t.diagnostic(`stopped in ${figure(ended)} while the database was silent`)
      assertWithin(ended, 10_000)
      proxy.cut()
      await assertNoBackend(url)
    })

  it('when every connection is busy, requests answer 503 in time and /live does not notice', async t => {
    const cli = await createCli(t)
    const { url, token } = await createStore()
    const api = await serve(cli, url)
    const release = await lock(
      t,
      url,
      'LOCK TABLE fatura.invoices, fatura.customers IN ACCESS EXCLUSIVE MODE',
    )
    const live = startLoad({
      address: api.address,
      paths: ['/live'],
      token,
      loops: 1,
      pause: campaign(50, 20),
      atMost: 20_000,
    })
    t.after(() => live.stop())
    const ready = startLoad({
      address: api.address,
      paths: ['/ready'],
      token,
      loops: 1,
      pause: campaign(50, 20),
      atMost: 20_000,
    })
    t.after(() => ready.stop())
    const burst = await Promise.all(
      Array.from({ length: 4 * poolSize }, (_, i) => ask(api.address + (i % 2 === 0 ? list : detail), token)),
    )
    await Promise.all([live.stop(), ready.stop()])
    for (const sample of [...burst, ...ready.samples]) assertBlip(sample)
    for (const { status } of burst) assert.equal(status, 503)
    assertWithin(worst(burst), 6_500)
    // Who waited for a read that has a connection would wait until it is given up, after 5 s.
    const waited = burst.filter(({ took }) => took < campaign(5_000, 3_200))
    t.diagnostic(
      `${waited.length} had no connection, worst ${figure(worst(waited))}; the others' worst ${figure(worst(burst))}; /live's worst of ${live.samples.length} ${figure(worst(live.samples))}; /ready's ${figure(worst(ready.samples))}`,
    )
    assert.ok(waited.length >= 2 * poolSize, 'who gets no connection does not wait for those who have one')
    assertWithin(worst(live.samples), campaign(2_000, 200))
    for (const { status } of live.samples) assert.equal(status, 200)
    assert.ok((await countBackends(url, 'fatura-api')) <= poolSize)

    await release()
    t.diagnostic(`200 again after ${figure(await untilAnswered(api.address + list, token))}`)
    const again = await Promise.all(Array.from({ length: 40 }, () => ask(api.address + detail, token)))
    for (const { status, text } of again) assert.equal(status, 200, text)
    assert.ok((await countBackends(url, 'fatura-api')) <= poolSize)
    assertCleanEnd(await api.stop())
    await assertNoBackend(url)
  })
})
