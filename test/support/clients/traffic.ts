/**
 * What a service sees behind a proxy that asks `/ready`: connections that are busy, idle for seconds, and new ones. And from
 * clients that ask nobody, and connect for each request until they are refused.
 */
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { ask, type Sample } from './load.ts'

export interface TrafficOptions {
  address: string
  paths: readonly string[]
  token: string
  /** How many loops of each kind. */
  busy: number
  idle: number
  fresh: number
  stubborn?: number
  /** Between an answer and the next request of a busy loop and of a fresh one, in milliseconds. */
  pauses?: Readonly<Record<'busy' | 'fresh', number>>
  /** How long an idle connection is silent between two requests, in milliseconds. */
  idleFor: readonly [least: number, most: number]
}

export interface Traffic {
  samples: readonly Sample[]
  /** Resolves when every connection has ended, or the patience is over. */
  ended: Promise<unknown>
  /** Ends every loop after its next answer. */
  stop(): void
}

/** How often the proxy asks, and for how long it trusts an answer: so long, new connections still come after `/ready` turned. */
const readyEveryMs = 300
const trustMs = 1_000

export function startTraffic({
  address,
  paths,
  token,
  busy,
  idle,
  fresh,
  stubborn = 0,
  pauses = { busy: 60, fresh: 60 },
  idleFor,
}: TrafficOptions): Traffic {
  const samples: Sample[] = []
  let isOpen = true
  let isStopped = false
  let readyUntil = Number.NEGATIVE_INFINITY

  async function watch(): Promise<void> {
    while (isOpen && !isStopped) {
      const asked = performance.now()
      const { status } = await ask(`${address}/ready`, token)
      if (status === 200) readyUntil = asked + trustMs
      else isOpen = false
      await sleep(readyEveryMs)
    }
  }

  /** False when nobody is to connect any more. */
  async function mayConnect(): Promise<boolean> {
    while (isOpen && !isStopped && performance.now() > readyUntil) await sleep(10)
    return isOpen && !isStopped
  }

  async function loop(agent: Agent | null, pause: () => number): Promise<void> {
    for (let turn = 0; !isStopped; turn++) {
      const hasConnection = agent !== null && Object.keys(agent.freeSockets).length > 0
      if (!hasConnection && !(await mayConnect())) return
      samples.push(await ask(`${address}${paths[turn % paths.length]}`, token, agent ?? new Agent()))
      await sleep(pause())
    }
  }

  /** Nothing of a request is lost that was never sent: who is refused may go elsewhere. */
  async function connectUntilRefused(): Promise<void> {
    while (!isStopped) {
      const sample = await ask(`${address}${paths[0]}`, token, new Agent())
      if (sample.text.includes('ECONNREFUSED')) return
      samples.push(sample)
      await sleep(pauses.fresh)
    }
  }

  const agents: Agent[] = []
  const keep = (pause: () => number) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    agents.push(agent)
    return loop(agent, pause)
  }
  const [least, most] = idleFor
  const loops = [
    watch(),
    ...Array.from({ length: busy }, () => keep(() => pauses.busy)),
    ...Array.from({ length: idle }, () => keep(() => least + Math.random() * (most - least))),
    ...Array.from({ length: fresh }, () => loop(null, () => pauses.fresh)),
    ...Array.from({ length: stubborn }, connectUntilRefused),
  ]
  return {
    samples,
    ended: Promise.all(loops).finally(() => {
      for (const agent of agents) agent.destroy()
    }),
    stop() {
      isStopped = true
    },
  }
}
