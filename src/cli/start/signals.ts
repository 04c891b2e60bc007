import { addAbortListener, once } from 'node:events'
import { constants } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { CliError } from '../terminal/cli-error.ts'

// To stop, to interrupt, and the closing of the terminal.
const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

export type EndSignal = (typeof signals)[number]

/** Resolves at the first signal to end, with its name. A second one ends the process at once. */
export async function waitForSignal(): Promise<EndSignal> {
  const first = await Promise.race(signals.map(signal => once(process, signal).then(() => signal)))
  for (const signal of signals) process.once(signal, () => process.exit(1))
  return first
}

/** Work that a signal ended; the exit code shows which signal. */
export class Interrupted extends CliError {
  constructor(signal: EndSignal) {
    super('Stopped before the end.', { exitCode: 128 + constants.signals[signal] })
  }
}

/** Aborted at the first signal, for work that cleans up after itself. A second one ends the process at once. */
export function stopAtSignal(): AbortSignal {
  const stopping = new AbortController()
  waitForSignal().then(signal => stopping.abort(new Interrupted(signal)))
  return stopping.signal
}

const cleaningMs = 1_000

/** Rejects with the signal's reason soon after it comes, however long the work would take. */
export async function unlessStopped<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const stopped = Promise.withResolvers<never>()
  using _ = addAbortListener(signal, async () => {
    await Promise.race([Promise.allSettled([work]), sleep(cleaningMs, undefined, { ref: false })])
    stopped.reject(signal.reason)
  })
  return await Promise.race([work, stopped.promise])
}

/** Clients may still send requests after a service manager's SIGTERM; a person at a terminal does not want to wait. */
export function delayAfter(signal: EndSignal, shutdownDelayMs: number): number {
  return signal === 'SIGTERM' ? shutdownDelayMs : 0
}

/** Waits for work that stops at the signal, whether it came to its end or not. */
export async function unlessAborted(signal: AbortSignal, work: Promise<unknown>): Promise<void> {
  await work.catch(error => {
    if (error !== signal.reason) throw error
  })
}

/** Ends the process soon, whatever is still open: a call to another system cannot be called off, and a failed command must not stay. */
export function leave(): void {
  setTimeout(() => process.exit(), 100).unref()
}
