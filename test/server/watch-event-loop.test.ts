import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { watchEventLoop } from '../../src/server/watch-event-loop.ts'

const requestsOfATurn = 40

test('requests are refused once long turns come again and again for a second, though short ones lie between them', async () => {
  const { isExcess, isShedding } = watchEventLoop()
  const began = performance.now()
  let firstRefusal = Number.POSITIVE_INFINITY
  async function runTurn(ms: number): Promise<void> {
    const ends = performance.now() + ms
    for (let request = 1; request <= requestsOfATurn; request++) {
      while (request === requestsOfATurn && performance.now() < ends);
      if (isExcess()) firstRefusal = Math.min(firstRefusal, performance.now() - began)
    }
    await nextTurn()
  }
  while (performance.now() - began < 1_500) {
    await runTurn(40)
    await runTurn(0)
  }
  equal(isShedding(), true)
  // Not before: it might be a pause of the machine.
  equal(firstRefusal > 1_000, true)
})
