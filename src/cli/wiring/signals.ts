import { once } from 'node:events'

// To stop, to interrupt, and the closing of the terminal.
const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

export type EndSignal = (typeof signals)[number]

/** Resolves at the first signal to end, with its name. A second one ends the process at once. */
export async function waitForSignal(): Promise<EndSignal> {
  const first = await Promise.race(signals.map(signal => once(process, signal).then(() => signal)))
  for (const signal of signals) process.once(signal, () => process.exit(1))
  return first
}

/**
 * How long to go on serving after a signal. Whatever starts and stops services sends SIGTERM, and may still send requests;
 * a person at a terminal, whose Ctrl-C is SIGINT, is alone with the service and does not want to wait.
 */
export function delayAfter(signal: EndSignal, shutdownDelayMs: number): number {
  return signal === 'SIGTERM' ? shutdownDelayMs : 0
}

/** Waits for work that stops at the signal, whether it came to its end or not. */
export async function unlessAborted(signal: AbortSignal, work: Promise<unknown>): Promise<void> {
  await work.catch(error => {
    if (error !== signal.reason) throw error
  })
}

/** A call to Stripe cannot be called off, and would keep the process for minutes: it is left behind. */
export function leave(): void {
  setTimeout(() => process.exit(), 100).unref()
}
