/** How soon a revocation holds in every process, and what the count of a token costs. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { readTokenId } from '../../src/http/access/token.ts'
import { createRateLimiter } from '../../src/http/rate-limit.ts'
import { openWriteStore } from '../../src/store/engines.ts'
import { campaign, reportFigure } from '../support/checks/campaign.ts'
import { createCli, createStoredToken } from '../support/clients/cli.ts'
import { engines } from '../support/databases/engines.ts'

const path = '/api/v1/client/cus_ana/invoices'

for (const engine of engines)
  test(`a revoked token is refused by each of two processes within a second, on ${engine.name}`, async t => {
    const url = await engine.createStore(t)
    const cli = await createCli(t)
    const env = { DATABASE_URL: url }
    const processes = await Promise.all([1, 2].map(() => cli.serve(['--rate-limit', 'off'], { env })))
    const store = await openWriteStore(url)
    t.after(() => store.close())
    const took: number[] = []
    const revocations = campaign(3, 20)
    for (let turn = 0; turn < revocations; turn++) {
      const token = await createStoredToken(url)
      for (const api of processes) assert.equal((await api.get(path, token)).status, 200)
      await store.revokeToken(readTokenId(token), Date.now())
      const revoked = performance.now()
      // Asked all the while, so that no process has a reason to look the token up again.
      await Promise.all(
        processes.map(async api => {
          while ((await api.get(path, token)).status === 200) await sleep(5)
          took.push(performance.now() - revoked)
        }),
      )
    }
    const longest = Math.max(...took)
    assert.ok(longest < 1_000, `refused after ${longest.toFixed(0)} ms`)
    reportFigure(
      t,
      'S2',
      `${engine.name}: ${revocations} revocations, refused by both processes after ${longest.toFixed(0)} ms at most`,
    )
  })

describe('the rate limiter', () => {
  /** Nanoseconds a request, at the best of some tries: others use this machine, too. */
  function costOf(tokens: number): number {
    const ids = Array.from({ length: tokens }, (_, n) => `fat_${n}`)
    let best = Number.POSITIVE_INFINITY
    for (let attempt = 0; attempt < 3; attempt++) {
      const take = createRateLimiter({ requests: 1_000_000, seconds: 3_600 })
      const begun = performance.now()
      for (let turn = 0; turn < 2; turn++) for (const id of ids) take(id)
      best = Math.min(best, ((performance.now() - begun) * 1e6) / (2 * tokens))
    }
    return best
  }

  test('needs the same time per request for 100,000 tokens as for 5,000', t => {
    costOf(5_000)
    const [few, many] = [costOf(5_000), costOf(100_000)]
    t.diagnostic(`${few.toFixed(0)} ns a request for 5,000 tokens, ${many.toFixed(0)} ns for 100,000`)
    // A larger Map misses the processor's caches more often; looking at every window would take 1,000 times as long.
    assert.ok(many < 20 * few + 2_000, `${many} ns a request for 100,000 tokens, ${few} ns for 5,000`)
  })
})
