/** The metrics of several processes or threads as one text. */
import { type EventEmitter, on } from 'node:events'
import { Registry } from '@prometheus-io/client'
import { type Metrics, type MetricsRoles, type Reading, startMetrics } from './metrics.ts'

export interface Peer {
  send(message: AskReading): void
  /** Emits `message` for every message that comes: a worker, or a thread. */
  messages: EventEmitter
}

interface AskReading {
  askReading: number
}

/** Time limit of an answer. */
const patienceMs = 2_000

/** Counts from now on, and answers the questions for readings among all messages. */
export function answerReadings(
  roles: MetricsRoles,
  messages: { on(event: 'message', hear: (message: unknown) => void): unknown },
  send: (answer: AskReading & { reading: Reading }) => void,
): void {
  const metrics = startMetrics(roles)
  messages.on('message', message => {
    const { askReading } = (message ?? {}) as Partial<AskReading>
    if (typeof askReading === 'number')
      metrics.read().then(
        reading => send({ askReading, reading }),
        () => {},
      )
  })
}

export function createGathering() {
  const last = new Map<Peer, Reading>()
  let ended: Reading = []
  let questions = 0

  async function ask(peer: Peer): Promise<Reading> {
    const askReading = questions++
    const messages = on(peer.messages, 'message', { signal: AbortSignal.timeout(patienceMs) })
    peer.send({ askReading })
    try {
      for await (const [given] of messages) if (given?.askReading === askReading) return given.reading
    } catch {
      // It is late, or has failed: its last answer counts.
    }
    return last.get(peer) ?? []
  }

  return {
    add: (peer: Peer) => void last.set(peer, []),
    /** Its counters stay counted: a sum must not fall when one of many ends. */
    remove(peer: Peer) {
      const counted = (last.get(peer) ?? []).filter(({ type }) => type === 'counter' || type === 'histogram')
      last.delete(peer)
      ended = [...ended, ...counted]
    },
    async read(): Promise<Reading> {
      const readings = await Promise.all(
        [...last.keys()].map(async peer => {
          const reading = await ask(peer)
          if (last.has(peer)) last.set(peer, reading)
          return reading
        }),
      )
      ended = await aggregate([ended])
      return aggregate([ended, ...readings])
    },
  }
}

/** Sums of metrics with the same name and labels; a gauge may name another way to join. */
async function aggregate(readings: readonly Reading[]): Promise<Reading> {
  return Registry.aggregate([...readings]).getMetricsAsJSON()
}

/** In Prometheus' text format. */
export async function writeMetrics(sources: readonly Metrics[]): Promise<string> {
  const readings = await Promise.all(sources.map(source => source.read()))
  return Registry.aggregate(readings).metrics()
}
