import { addAbortListener, once } from 'node:events'
import { constants } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { CliError } from '../terminal/cli-error.ts'

// SIGTERM comes from a service manager, SIGINT from Ctrl-C, and SIGHUP when the terminal closes.
const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

export type EndSignal = (typeof signals)[number]

/** Resolves with the name of the first signal that asks the process to end. A second signal ends the process at once. */
export async function waitForSignal(): Promise<EndSignal> {
  const first = await Promise.race(signals.map(signal => once(process, signal).then(() => signal)))
  for (const signal of signals) process.once(signal, () => process.exit(1))
  return first
}

/** Thrown when a signal ended the work. The exit code is 128 plus the signal's number. */
export class Interrupted extends CliError {
  constructor(signal: EndSignal) {
    super('Stopped before the end.', { exitCode: 128 + constants.signals[signal] })
  }
}

/**
 * Returns a signal that is aborted when the process is asked to end, for work that cleans up after itself. A second request ends the
 * process at once.
 */
export function stopAtSignal(): AbortSignal {
  const stopping = new AbortController()
  waitForSignal().then(signal => stopping.abort(new Interrupted(signal)))
  return stopping.signal
}

const cleaningMs = 1_000

/** Rejects at most one second after the signal, even when the work takes longer. The second is for the work's own cleanup. */
export async function unlessStopped<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const stopped = Promise.withResolvers<never>()
  using _ = addAbortListener(signal, async () => {
    await Promise.race([Promise.allSettled([work]), sleep(cleaningMs, undefined, { ref: false })])
    stopped.reject(signal.reason)
  })
  return await Promise.race([work, stopped.promise])
}

/**
 * Returns the time in which the API still serves. After SIGTERM, clients may still send requests. After Ctrl-C the process ends without a
 * delay.
 */
export function delayAfter(signal: EndSignal, shutdownDelayMs: number): number {
  return signal === 'SIGTERM' ? shutdownDelayMs : 0
}

/** Waits for work that the signal may abort. An aborted end counts as a normal end. */
export async function unlessAborted(signal: AbortSignal, work: Promise<unknown>): Promise<void> {
  await work.catch(error => {
    if (error !== signal.reason) throw error
  })
}

/**
 * Ends the process after 100 ms even when handles are open. A running call to another system cannot be cancelled, and would keep a failed
 * command alive.
 */
export function leave(): void {
  setTimeout(() => process.exit(), 100).unref()
}
