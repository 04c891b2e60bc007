import { once } from 'node:events'

// To stop, to interrupt, and the closing of the terminal.
const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/** Resolves at the first signal to end. A second one ends the process at once. */
export async function waitForSignal(): Promise<void> {
  await Promise.race(signals.map(signal => once(process, signal)))
  for (const signal of signals) process.once(signal, () => process.exit(1))
}
