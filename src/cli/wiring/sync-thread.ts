/**
 * The connector beside the API. SQLite writes in the thread that asks, and to map what came takes its time on every engine:
 * in a thread of its own, neither keeps a request waiting.
 */
import { once } from 'node:events'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { CliError } from '../terminal/cli-error.ts'
import type { AdminChannel } from './admin-channel.ts'
import type { SyncOptions } from './start-sync.ts'

/** With the ending of this file: in a package it is compiled. */
const workerFile = new URL(`./sync-worker${extname(import.meta.url)}`, import.meta.url)

/** What a thread can be given. */
export type ThreadOptions = Pick<
  SyncOptions,
  'url' | 'stripe' | 'invoiceXpress' | 'rules' | 'keys' | 'webhooks'
> & { logLevel: string; isMeasured: boolean }

/** An end that is no fault: what a `CliError` is made of. */
export interface Refusal {
  message: string
  exitCode: number
}

/** Goes on until the signal. Rejects when the thread refuses to go on, or crashes. */
export async function syncInThread(
  options: ThreadOptions,
  signal: AbortSignal,
  channel: AdminChannel,
): Promise<void> {
  const worker = new Worker(workerFile, { workerData: options })
  const stop = () => worker.postMessage('stop')
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop, { once: true })
  let refusal: Refusal | undefined
  worker.on('message', (given: Refusal | { askReading: number }) => {
    if ('exitCode' in given) refusal = given
  })
  if (options.isMeasured)
    channel.addPeer({
      send: message => worker.postMessage(message),
      listen(hear) {
        worker.on('message', hear)
        return () => worker.off('message', hear)
      },
    })
  const [code] = await once(worker, 'exit')
  if (refusal !== undefined) throw new CliError(refusal.message, { exitCode: refusal.exitCode })
  if (code !== 0) throw new Error(`The thread that synchronizes ended with code ${code}.`)
}
