/** How soon a service answers again after its PostgreSQL restarted under load. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { reportFigure } from '../support/checks/campaign.ts'
import { createCli, eventually } from '../support/clients/cli.ts'
import { type Sample, startLoad } from '../support/clients/load.ts'
import {
  assertBlip,
  assertCleanEnd,
  createStore,
  detail,
  list,
  restartServer,
  serve,
  useOwnPostgres,
} from '../support/databases/own-postgres.ts'

useOwnPostgres()

const restarts = [
  ...(['SIGINT', 'SIGKILL', 'SIGQUIT', 'SIGINT', 'SIGKILL'] as const),
  ...(['SIGQUIT', 'SIGINT', 'SIGKILL', 'SIGINT', 'SIGINT'] as const),
]
const boundMs = 2_000

const worst = (samples: readonly Sample[]) => Math.max(...samples.map(({ took }) => took))
const figure = (ms: number) => `${Math.round(ms)} ms`

it('the service answers 200 within 2 s after a restart of PostgreSQL, and no request takes longer', async t => {
  const cli = await createCli(t)
  const { url, token } = await createStore()
  const api = await serve(cli, url)
  const load = startLoad({
    address: api.address,
    paths: [list, detail, `${list}?q=lima&page_size=5`],
    token,
    loops: 16,
    pause: 4,
    atMost: Number.POSITIVE_INFINITY,
  })
  t.after(() => load.stop())
  const answered = async (since: number) => {
    const find = () => load.samples.find(({ at, status }) => status === 200 && at >= since)
    await eventually('there is a 200', () => find() !== undefined)
    return find() as Sample
  }
  await answered(0)

  let slowest = 0
  for (const [index, how] of restarts.entries()) {
    const before = load.samples.length
    await restartServer(how, () => sleep(300))
    const accepting = performance.now()
    const recovery = (await answered(accepting)).at - accepting
    const during = load.samples.slice(before)
    const refused = during.filter(({ status }) => status !== 200).length
    t.diagnostic(
      `restart ${index + 1} (${how}): 200 after ${figure(recovery)}, ${refused} of ${during.length} refused, worst ${figure(worst(during))}`,
    )
    slowest = Math.max(slowest, recovery)
    await sleep(200)
  }
  await load.stop()
  for (const sample of load.samples) assertBlip(sample)
  const longest = worst(load.samples)
  reportFigure(
    t,
    'R6',
    `${restarts.length} restarts under ${load.samples.length} requests: 200 after ${figure(slowest)} at most, longest request ${figure(longest)}`,
  )
  assert.ok(slowest < boundMs && longest < boundMs)
  assertCleanEnd(await api.stop())
})
