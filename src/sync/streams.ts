/** Streams of records: where each stands, and that it is told when one fails. */
import type { Stream, WriteStore, WriteTransaction } from '../store/store.ts'

export interface Streams {
  read(name: string): Promise<Stream>
  /** Runs a stream to its end, or records why it did not get there. */
  run<T>(name: string, run: (stream: Stream) => Promise<T>): Promise<T>
}

export function createStreams(store: WriteStore, signal: AbortSignal): Streams {
  async function read(name: string): Promise<Stream> {
    const streams = await store.listStreams()
    const none = { name, cursor: null, succeeded_at: null, failed_at: null, error: null }
    return streams.find(stream => stream.name === name) ?? none
  }

  return {
    read,
    async run(name, run) {
      try {
        return await run(await read(name))
      } catch (error) {
        if (!signal.aborted) {
          const message = error instanceof Error ? error.message : String(error)
          const stream = await read(name)
          await store.transaction(tx => tx.saveStream({ ...stream, failed_at: Date.now(), error: message }))
        }
        throw error
      }
    },
  }
}

/** Records that a run reached its end, and where the next one begins. */
export function succeed(stream: Stream, cursor: string | null, at = Date.now()) {
  return (tx: WriteTransaction): Promise<void> =>
    tx.saveStream({ ...stream, cursor, succeeded_at: at, failed_at: null, error: null })
}
