/** Runs the connector in a thread of its own. Its writes and its mapping do not delay requests of the API. */
import { addAbortListener, once } from 'node:events'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { syncOf } from '../settings/connections.ts'
import { CliError } from '../terminal/cli-error.ts'
import type { AdminChannel } from './admin-channel.ts'
import type { SyncOptions } from './open-connector.ts'

/** The worker's file has the same extension as this file, because the package holds compiled `.js` files. */
const workerFile = new URL(`./sync-worker${extname(import.meta.url)}`, import.meta.url)

/** Options of the connector without functions and signals, because only plain data can be sent to a thread. */
export type ThreadOptions = Pick<SyncOptions, keyof ReturnType<typeof syncOf>> & {
  logLevel: string
  isMeasured: boolean
}

export type StartFailure = Pick<CliError, 'message' | 'exitCode'>

/** Runs the thread until the signal. Rejects when the thread reports an error or crashes. */
export async function syncInThread(
  options: ThreadOptions,
  signal: AbortSignal,
  channel: AdminChannel,
): Promise<void> {
  const worker = new Worker(workerFile, { workerData: options })
  addAbortListener(signal, () => worker.postMessage('stop'))
  let refusal: StartFailure | undefined
  worker.on('message', (given: StartFailure | { askReading: number }) => {
    if ('exitCode' in given) refusal = given
  })
  if (options.isMeasured) channel.addThread(worker)
  const [code] = await once(worker, 'exit')
  if (refusal !== undefined) throw new CliError(refusal.message, { exitCode: refusal.exitCode })
  if (code !== 0) throw new Error(`The thread that synchronizes ended with code ${code}.`)
}
