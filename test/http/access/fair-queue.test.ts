/** The queue before what is scarce: its limits, its order, and its ways out. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createFairQueue, type QueueLimits } from '../../../src/http/access/fair-queue.ts'
import { settle, stopClock } from '../../support/worlds/stopped-clock.ts'

/** Who still waits leaves with the test. */
function openQueue({ signal }: TestContext, limits: Partial<QueueLimits>) {
  const take = createFairQueue(
    { perGroup: 100, waitingPerGroup: 100, waitMs: 5_000, ...limits },
    isOwn => new Error(isOwn ? 'own' : 'others'),
  )
  const started: string[] = []
  const ends = new Map<string, () => void>()
  return {
    take,
    started,
    /** Each is a group and a member, as in a1. */
    ask(...names: string[]): void {
      for (const name of names)
        take(name.charAt(0), name.charAt(1), signal).then(
          end => {
            started.push(name)
            ends.set(name, end)
          },
          () => {},
        )
    },
    end: (name: string) => ends.get(name)?.(),
  }
}

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

// A timer without a time is one.
process.on('warning', warning => {
  throw warning
})

describe('the fair queue', () => {
  it('keeps the limits per member, per group and in total, and starts one more entry after each end', async t => {
    for (const [limits, first, next] of [
      [{ perMember: 1 }, ['a1', 'a2', 'b1'], ['a1']],
      [{ perGroup: 2 }, ['a1', 'a1', 'b1'], ['a1']],
      [{ inAll: 3 }, ['a1', 'a1', 'b1'], ['a1']],
    ] as const) {
      const queue = openQueue(t, limits)
      queue.ask(...first, ...next)
      await settle()
      assert.deepEqual(queue.started, first)
      queue.ask('a1')
      queue.end('a1')
      queue.end('a1')
      await settle()
      assert.deepEqual(queue.started, [...first, ...next])
    }
  })

  it('serves groups in turn, and in each group its members in turn', async t => {
    const queue = openQueue(t, { inAll: 1 })
    queue.ask('x0', 'a1', 'a1', 'a1', 'a2', 'b1', 'b1', 'c1')
    await settle()
    for (let turn = 0; turn < 8; turn++) {
      queue.end(queue.started.at(-1) ?? '')
      await settle()
    }
    assert.deepEqual(queue.started, ['x0', 'a1', 'b1', 'c1', 'a2', 'b1', 'a1', 'a1'])
  })

  it('refuses at once when the group is full, and after a time-out otherwise, with the reason', async t => {
    const clock = stopClock(t)
    const queue = openQueue(t, { perGroup: 1, inAll: 2, waitingPerGroup: 1, waitMs: 60 })
    queue.ask('a1', 'b1')
    const waiting = [queue.take('a', '1'), queue.take('c', '1')]
    await assert.rejects(queue.take('a', '2'), /own/)
    const outcomes: string[] = []
    for (const turn of waiting) turn.catch(error => outcomes.push(error.message))
    await clock.pass(59)
    assert.deepEqual(outcomes, [])
    await clock.pass(1)
    assert.deepEqual(outcomes, ['own', 'others'])
    // Who gave up takes no room.
    const next = queue.take('a', '1')
    queue.end('a1')
    ;(await next)()
  })

  it('does not serve a member that has left, and serves the next one', async t => {
    const queue = openQueue(t, { perGroup: 1, waitingPerGroup: 1 })
    await assert.rejects(queue.take('a', '1', AbortSignal.abort(new Error('gone'))), /gone/)
    queue.ask('a1')
    const client = new AbortController()
    const left = queue.take('a', '1', client.signal)
    client.abort(new Error('left'))
    await assert.rejects(left, /left/)
    queue.ask('a2')
    queue.end('a1')
    await settle()
    assert.deepEqual(queue.started, ['a1', 'a2'])
    // A turn that began goes on until its end, whether its client stays or not.
    const late = new AbortController()
    await queue.take('b', '1', late.signal)
    late.abort()
    queue.ask('b1')
    await settle()
    assert.deepEqual(queue.started, ['a1', 'a2'])
  })

  it('keeps the other entries of a member when one of them leaves', async t => {
    const queue = openQueue(t, { inAll: 1 })
    queue.ask('x0', 'a1')
    const left = [new AbortController(), new AbortController()].map(client => {
      const turn = queue.take('a', '1', client.signal)
      client.abort(new Error('left'))
      return assert.rejects(turn, /left/)
    })
    await Promise.all(left)
    queue.end('x0')
    await settle()
    assert.deepEqual(queue.started, ['x0', 'a1'])
    // Nor does a turn that ends.
    queue.ask('a1', 'a1')
    for (const length of [3, 4]) {
      queue.end('a1')
      await settle()
      assert.equal(queue.started.length, length)
    }
  })

  it('starts half a second’s worth of entries at once, and spreads the others evenly', async t => {
    const clock = stopClock(t)
    for (const limits of [{ perMemberSecond: 20 }, { inAllSecond: 20 }]) {
      const queue = openQueue(t, limits)
      queue.ask(...Array(15).fill('a1'))
      await settle()
      for (let count = 11; count < 15; count++) {
        assert.equal(queue.started.length, count)
        await clock.pass(49)
        assert.equal(queue.started.length, count, 'not before its time')
        await clock.pass(1)
      }
      assert.equal(queue.started.length, 15)
    }
  })

  it('applies a member’s pace across its turns, and not to other members', async t => {
    const clock = stopClock(t)
    const queue = openQueue(t, { perMemberSecond: 2 })
    queue.ask('a1', 'a1')
    await settle()
    queue.end('a1')
    queue.ask('a1', 'a2')
    await clock.pass(499)
    assert.deepEqual(queue.started, ['a1', 'a1', 'a2'])
    await clock.pass(1)
    assert.deepEqual(queue.started, ['a1', 'a1', 'a2', 'a1'])
  })

  it('applies a member’s pace even after all its turns have ended', async t => {
    const clock = stopClock(t)
    const queue = openQueue(t, { perMemberSecond: 2 })
    for (let turn = 0; turn < 2; turn++) (await queue.take('a', '1'))()
    await clock.pass(100)
    queue.ask('a1')
    await clock.pass(399)
    assert.deepEqual(queue.started, [])
    await clock.pass(1)
    assert.deepEqual(queue.started, ['a1'])
  })

  it('names the member’s pace or the total pace as the reason of a refusal', async t => {
    const clock = stopClock(t)
    for (const [limits, reason] of [
      [{ perMemberSecond: 0.1 }, /own/],
      [{ inAllSecond: 0.1 }, /others/],
      [{ perMemberSecond: 0.1, inAllSecond: 0.1 }, /own/],
      [{ perMember: 1 }, /own/],
    ] as const) {
      const queue = openQueue(t, { ...limits, waitMs: 20 })
      queue.ask('a1')
      await settle()
      // A pace is known beyond the turn's end.
      if (!('perMember' in limits)) queue.end('a1')
      await settle()
      const refused = assert.rejects(queue.take('a', '1'), reason)
      await clock.pass(20)
      await refused
    }
  })

  it('names the member’s own limit as the reason of a refusal, even after a pause of the process', async t => {
    const clock = stopClock(t)
    // Their time comes after half a second, long after the wait has ended.
    const queue = openQueue(t, { perMemberSecond: 1, waitMs: 20 })
    queue.ask('a1')
    const refused = [queue.take('a', '1'), queue.take('a', '1')].map(turn => assert.rejects(turn, /own/))
    // The timers of 20 ms run late.
    const late = performance.now() + 600
    t.mock.method(performance, 'now', () => late)
    await clock.pass(20)
    await Promise.all(refused)
  })

  it('starts a paced entry on time while a member at its limit waits', async t => {
    const clock = stopClock(t)
    const queue = openQueue(t, { perMember: 1, perMemberSecond: 20 })
    queue.ask('a1', 'a1')
    for (let turn = 0; turn < 11; turn++) (await queue.take('a', '2'))()
    let isStarted = false
    queue.take('a', '2').then(() => {
      isStarted = true
    })
    await clock.pass(49)
    assert.equal(isStarted, false)
    await clock.pass(1)
    assert.equal(isStarted, true)
    assert.deepEqual(queue.started, ['a1'])
  })
})

test('the fair queue forgets members and groups that have left, served or not', async t => {
  const queue = openQueue(t, {})
  const full = openQueue(t, { inAll: 1 })
  full.ask('a1')
  const heapBytes = () => {
    collectGarbage()
    return process.memoryUsage().heapUsed
  }
  const before = heapBytes()
  for (let i = 0; i < 1_000; i++) {
    const name = Buffer.alloc(20_000, `${i}-`).toString()
    ;(await queue.take('a', name))()
    ;(await queue.take(name, '1'))()
    for (const [group, member] of [
      ['a', name],
      [name, '1'],
    ] as const) {
      const client = new AbortController()
      const turn = full.take(group, member, client.signal)
      client.abort(new Error('left'))
      await assert.rejects(turn, /left/)
    }
  }
  await settle()
  const keptBytes = heapBytes() - before
  // The queues are not gone.
  ;(await queue.take('a', '1'))()
  full.end('a1')
  assert.ok(keptBytes < 5_000_000, `${keptBytes} bytes`)
})
