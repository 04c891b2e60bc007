/** Combines the metrics of a process and of its thread into one text. */
import { type EventEmitter, on } from 'node:events'
import { Registry } from '@prometheus-io/client'
import { type Metrics, type MetricsRoles, type Reading, startMetrics } from './metrics.ts'

/** Emits `message` for every incoming message. */
export interface Thread extends EventEmitter {
  postMessage(message: AskReading): void
}

interface AskReading {
  askReading: number
}

const patienceMs = 2_000

/** Starts the metrics of this thread and answers requests for a reading. Other messages are ignored. */
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

/** Returns the metrics of a thread. When the thread is late or has failed, its last metrics are used. */
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
        // A late or ended thread is not an error. The last reading is returned.
      }
      return last
    },
  }
}

/** Returns the text format of Prometheus. */
export async function writeMetrics(sources: readonly Metrics[]): Promise<string> {
  const readings = await Promise.all(sources.map(source => source.read()))
  return Registry.aggregate(readings).metrics()
}
