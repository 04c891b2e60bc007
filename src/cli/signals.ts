import { once } from 'node:events'

/** Resolves at SIGTERM or SIGINT. A second signal ends the process at once. */
export async function waitForSignal(): Promise<void> {
  await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')])
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(1))
}
