/** The thread that synchronizes until it receives the message `stop`. */
import { parentPort, workerData } from 'node:worker_threads'
import { StoreError } from '../../store/store.ts'
import { CliError } from '../terminal/cli-error.ts'
import { createLog } from '../terminal/log.ts'
import { syncOn } from './start-sync.ts'
import type { StartFailure, ThreadOptions } from './sync-thread.ts'

const { logLevel, isMeasured, ...options } = workerData as ThreadOptions
const stop = new AbortController()
parentPort?.on('message', message => message === 'stop' && stop.abort())
if (isMeasured) {
  const { answerReadings } = await import('../../operations/metrics/gather.ts')
  const roles = { serves: null, isMain: false }
  if (parentPort !== null) answerReadings(roles, parentPort, answer => parentPort?.postMessage(answer))
}
try {
  await syncOn({ ...options, log: createLog(logLevel), signal: stop.signal })
} catch (error) {
  if (!(error instanceof CliError || error instanceof StoreError)) throw error
  const exitCode = error instanceof CliError ? error.exitCode : 1
  parentPort?.postMessage({ message: error.message, exitCode } satisfies StartFailure)
}
// In a worker, `process.exit` ends only the thread. It does not wait for a running call to Stripe, which cannot be cancelled.
process.exit()
