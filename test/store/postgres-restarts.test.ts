/** A service whose PostgreSQL restarts under load: come back later, and never a hang or a leak. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createCli, eventually } from '../support/clients/cli.ts'
import { startLoad } from '../support/clients/load.ts'
import {
  assertBlip,
  assertCleanEnd,
  assertFewSockets,
  assertNoBackend,
  countBackends,
  countSockets,
  createStore,
  detail,
  list,
  poolSize,
  restartServer,
  serve,
  useOwnPostgres,
} from '../support/databases/own-postgres.ts'

useOwnPostgres()

describe('a restart of PostgreSQL', () => {
  it('under load leads to 200 or 503 with Retry-After, then to 200, and leaks no connection', {
    timeout: 600_000,
  }, async t => {
    const cli = await createCli(t)
    const { url, token } = await createStore()
    const api = await serve(cli, url)
    const socketsAtFirst = await countSockets(api.pid)
    const load = startLoad({
      address: api.address,
      paths: [list, detail, `${list}?q=lima&page_size=5`],
      token,
      loops: 16,
      pause: 60,
      atMost: Number.POSITIVE_INFINITY,
    })
    t.after(() => load.stop())
    const answered = (status: number, from = load.samples.length) =>
      eventually(`there is a ${status}`, () => load.samples.slice(from).some(each => each.status === status))
    await answered(200)
    for (const how of ['SIGINT', 'SIGKILL', 'SIGQUIT'] as const) {
      await restartServer(how, () => answered(503))
      await answered(200)
    }
    await load.stop()
    for (const sample of load.samples) assertBlip(sample)
    assert.ok((await countBackends(url, 'fatura-api')) <= poolSize)
    await assertFewSockets(api.pid, socketsAtFirst)
    assertCleanEnd(await api.stop())
    await assertNoBackend(url)
  })
})
