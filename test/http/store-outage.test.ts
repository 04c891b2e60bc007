/** An outage of the store fills no disk with its log. */
import assert from 'node:assert/strict'
import { renameSync } from 'node:fs'
import { describe, it } from 'node:test'
import { pino } from 'pino'
import { StoreOutage } from '../../src/http/store-outage.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { startService } from '../support/worlds/service.ts'
import { stopClock } from '../support/worlds/stopped-clock.ts'

describe('an outage of the store', () => {
  it('is logged at its beginning, once a minute with a count, and at its end', () => {
    let nowMs = 0
    const lines: Record<string, unknown>[] = []
    const log = pino({ base: null, timestamp: false }, { write: line => void lines.push(JSON.parse(line)) })
    const outage = new StoreOutage(log, () => nowMs)
    outage.recordSuccess()
    assert.deepEqual(lines, [])
    // 100 requests a second, for two and a half minutes; some are answered in between.
    for (; nowMs < 150_000; nowMs += 10) {
      outage.recordFailure('req_1', new Error('connection refused'))
      if (nowMs % 1_000 === 0) outage.recordSuccess()
    }
    nowMs += 10_000
    for (let i = 0; i < 3; i++) outage.recordSuccess()
    assert.deepEqual(
      lines.map(({ msg, failed, seconds }) => [msg, failed, seconds]),
      [
        ['the store cannot be read: requests get 503', undefined, undefined],
        ['the store still cannot be read', 6_001, undefined],
        ['the store still cannot be read', 6_000, undefined],
        ['the store can be read again', 15_000, 150],
      ],
    )
    outage.recordFailure('req_2', new Error('again'))
    assert.equal(lines.length, 5)
  })

  it('is logged by a running service', { timeout: 600_000 }, async t => {
    const [engine] = engines as [Engine]
    const service = await startService(t, engine)
    const clock = stopClock(t)
    const path = service.url.slice('sqlite:'.length)
    const warnings = () =>
      service.logs
        .map(line => JSON.parse(line))
        .filter(({ level, msg }) => level >= 40 && msg.includes('store'))
    renameSync(path, `${path}.away`)
    await clock.pass(1_000)
    for (let i = 0; i < 20; i++) assert.equal((await service.list()).status, 503)
    assert.deepEqual(
      warnings().map(({ msg }) => msg),
      ['the store cannot be read: requests get 503'],
    )
    assert.match(warnings()[0].err.message, /is gone/)
    renameSync(`${path}.away`, path)
    await clock.pass(6_000)
    assert.equal((await service.list()).status, 200)
    assert.deepEqual(
      warnings()
        .slice(1)
        .map(({ msg, failed }) => [msg, failed]),
      [['the store can be read again', 20]],
    )
  })
})
