/** The metrics of a process and of the thread beside it as one text. */
import { type EventEmitter, on } from 'node:events'
import { Registry } from '@prometheus-io/client'
import { type Metrics, type MetricsRoles, type Reading, startMetrics } from './metrics.ts'

/** Emits `message` for every message that comes. */
export interface Thread extends EventEmitter {
  postMessage(message: AskReading): void
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

/** The metrics that a thread answers with; its last ones when it is late, or has failed. */
export function readThread(thread: Thread): Metrics {
  let last: Reading = []
  let questions = 0
  return {
    async read() {
      const askReading = questions++
      const messages = on(thread, 'message', { signal: AbortSignal.timeout(patienceMs) })
      thread.postMessage({ askReading })
      try {
        for await (const [given] of messages)
          if (given?.askReading === askReading) {
            last = given.reading
            break
          }
      } catch {
        // Its last ones count.
      }
      return last
    },
  }
}

/** In Prometheus' text format. */
export async function writeMetrics(sources: readonly Metrics[]): Promise<string> {
  const readings = await Promise.all(sources.map(source => source.read()))
  return Registry.aggregate(readings).metrics()
}
