/** Steps of the connector that go on until a signal, whatever fails meanwhile. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'

/** How long to wait after a failure, in milliseconds. */
export const patience = 5_000

/** Repeats a step until the signal, after a pause that it resolves with; sooner when it failed. */
export async function repeat(step: () => Promise<number>, log: Logger, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await pause(await step(), signal)
    } catch (error) {
      if (signal.aborted) return
      log.error({ err: error }, 'sync failed; trying again')
      await pause(patience, signal)
    }
  }
}

export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => {})
}
