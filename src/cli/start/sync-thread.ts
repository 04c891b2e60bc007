/** The connector beside the API, in a thread of its own: neither writes nor mappings keep a request waiting. */
import { addAbortListener, once } from 'node:events'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { syncOf } from '../settings/connections.ts'
import { CliError } from '../terminal/cli-error.ts'
import type { AdminChannel } from './admin-channel.ts'
import type { SyncOptions } from './open-connector.ts'

/** With the extension of this file: a package is compiled. */
const workerFile = new URL(`./sync-worker${extname(import.meta.url)}`, import.meta.url)

/** The options that can be sent to a thread. */
export type ThreadOptions = Pick<SyncOptions, keyof ReturnType<typeof syncOf>> & {
  logLevel: string
  isMeasured: boolean
}

export type StartFailure = Pick<CliError, 'message' | 'exitCode'>

/** Goes on until the signal. Rejects when the thread refuses to go on, or crashes. */
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
