/** A process that takes a large customer's counters away and brings them back, until it is told to stop. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'

export interface Flipping {
  /** How often they went and came so far. */
  flips(): Promise<number>
  stop(): Promise<void>
}

export async function flipCounters(t: TestContext, url: string): Promise<Flipping> {
  const child: ChildProcess = fork(new URL(import.meta.url).pathname, [url.slice('sqlite:'.length)])
  t.after(() => child.kill('SIGKILL'))
  await once(child, 'message')
  return {
    async flips() {
      child.send('tell')
      const [flips] = await once(child, 'message')
      return flips
    },
    async stop() {
      child.send('stop')
      await once(child, 'exit')
    },
  }
}

async function flip(path: string): Promise<void> {
  const db = new DatabaseSync(path, { timeout: 10_000 })
  db.exec('PRAGMA synchronous = OFF; CREATE TEMP TABLE kept AS SELECT * FROM counters')
  let [flips, isOver] = [0, false]
  process.on('message', told => {
    if (told === 'stop') isOver = true
    else process.send?.(flips)
  })
  process.send?.('flipping')
  while (!isOver) {
    db.exec(
      "BEGIN IMMEDIATE; DELETE FROM counters; UPDATE customers SET counted = 0 WHERE customer_id = 'cus_ana'; COMMIT",
    )
    db.exec(
      "BEGIN IMMEDIATE; INSERT INTO counters SELECT * FROM kept; UPDATE customers SET counted = 1 WHERE customer_id = 'cus_ana'; COMMIT",
    )
    flips++
    await new Promise(resolve => setImmediate(resolve))
  }
  db.close()
  process.disconnect?.()
}

if (process.send !== undefined && process.argv[1] === new URL(import.meta.url).pathname)
  await flip(process.argv[2] ?? '')
