/** The metrics of several processes or threads as one text. */
import { Registry } from '@prometheus-io/client'
import type { Metrics, Reading } from './metrics.ts'

/** Who is asked: another process or thread. */
export interface Peer {
  send(message: AskReading): void
  /** Calls `hear` with each message that comes, until told to stop. */
  listen(hear: (message: unknown) => void): () => void
}

interface AskReading {
  askReading: number
}

interface GiveReading {
  askReading: number
  reading: Reading
}

/** How long a peer may take. One that is busy for longer is left out, this once. */
const patienceMs = 2_000

/** Answers whoever asks for readings; says whether the message was such a question. */
export function answerReading(
  message: unknown,
  metrics: Metrics,
  send: (answer: GiveReading) => void,
): boolean {
  const { askReading } = (message ?? {}) as Partial<AskReading>
  if (typeof askReading !== 'number') return false
  metrics.read().then(
    reading => send({ askReading, reading }),
    () => {},
  )
  return true
}

export interface Gathering extends Metrics {
  add(peer: Peer): void
  /** What it counted stays counted: a sum must not fall when one of many ends. */
  remove(peer: Peer): void
}

export function createGathering(): Gathering {
  const last = new Map<Peer, Reading>()
  let ended: Reading = []
  let questions = 0

  async function ask(peer: Peer): Promise<Reading> {
    const askReading = questions++
    const { promise, resolve } = Promise.withResolvers<Reading>()
    const stop = peer.listen(message => {
      const given = (message ?? {}) as Partial<GiveReading>
      if (given.askReading === askReading && given.reading !== undefined) resolve(given.reading)
    })
    const timer = setTimeout(() => resolve(last.get(peer) ?? []), patienceMs)
    try {
      peer.send({ askReading })
      return await promise
    } finally {
      clearTimeout(timer)
      stop()
    }
  }

  return {
    add: peer => void last.set(peer, []),
    remove(peer) {
      const counted = (last.get(peer) ?? []).filter(({ type }) => type === 'counter' || type === 'histogram')
      last.delete(peer)
      ended = [...ended, ...counted]
    },
    async read() {
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

/** Sums of what has the same name and labels; what is no sum says itself how it is joined. */
async function aggregate(readings: readonly Reading[]): Promise<Reading> {
  return Registry.aggregate([...readings]).getMetricsAsJSON()
}

/** In Prometheus' text format. */
export async function writeMetrics(sources: readonly Metrics[]): Promise<string> {
  const readings = await Promise.all(sources.map(source => source.read()))
  return Registry.aggregate(readings).metrics()
}
