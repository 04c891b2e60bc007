import { equal } from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { watchEventLoop } from '../../../src/http/server/watch-event-loop.ts'

/** Turns of 40 requests by a clock of their own. */
function startTurns(t: TestContext) {
  let now = 1_000
  t.mock.method(performance, 'now', () => now)
  const { isExcess } = watchEventLoop()
  /** Resolves with whether the last request of such a turn was refused. */
  async function isRefused(turnMs: number): Promise<boolean> {
    for (let request = 1; request < 40; request++) isExcess()
    now += turnMs
    const refused = isExcess()
    await nextTurn()
    return refused
  }
  return {
    isRefused,
    pass(ms: number): void {
      now += ms
    },
  }
}

describe('requests are refused for a busy event loop', () => {
  test('after a second of long turns with at most 250 ms between them', async t => {
    const { isRefused } = startTurns(t)
    for (let passed = 0; passed < 900; passed += 50) {
      equal(await isRefused(40), false)
      equal(await isRefused(10), false)
    }
    await isRefused(100)
    equal(await isRefused(40), true)
  })

  test('until a second has passed without a long turn', async t => {
    const { isRefused, pass } = startTurns(t)
    while (!(await isRefused(40)));
    pass(900)
    equal(await isRefused(40), true)
    pass(1_100)
    equal(await isRefused(40), false)
  })

  test('not when two long turns are far apart', async t => {
    const { isRefused, pass } = startTurns(t)
    equal(await isRefused(40), false)
    pass(5_000)
    equal(await isRefused(40), false)
  })
})
