/** The state of each stream: its cursor, last success and last failure. */
import type { Stream, WriteStore } from '../store/store.ts'

export type Streams = ReturnType<typeof createStreams>

export function createStreams(store: WriteStore, signal: AbortSignal) {
  const read = async (name: string) => (await readStreams(store)).get(name) ?? newStream(name)
  return {
    read,
    /** Runs work on a stream. Stores the reason with the stream when the work fails. */
    async run<T>(name: string, run: (stream: Stream) => Promise<T>): Promise<T> {
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

export async function readStreams(store: Pick<WriteStore, 'listStreams'>): Promise<Map<string, Stream>> {
  return new Map((await store.listStreams()).map(stream => [stream.name, stream]))
}

export function newStream(name: string): Stream {
  return { name, cursor: null, succeeded_at: null, failed_at: null, error: null }
}
