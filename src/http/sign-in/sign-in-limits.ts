import { networkOf } from '../access/lookup-guard.ts'
import { createWindows, remainingSeconds } from '../access/windows.ts'

const seconds = 3_600
export const perEmail = 3
export const perSource = 20

/** `send` is false when the address already got the maximum of mails. The client does not learn this. */
export type Counted = { refusedSeconds: number } | { send: boolean }

/** Counts in memory, so each process counts for itself. `nowMs` is a value of the monotonic clock. */
export function createSignInLimits(): (email: string, address: string, nowMs: number) => Counted {
  const sources = createWindows(seconds)
  const emails = createWindows(seconds)
  return (email, address, nowMs) => {
    const source = sources.add(networkOf(address), nowMs)
    if (source.count > perSource) return { refusedSeconds: remainingSeconds(source, nowMs) }
    return { send: emails.add(email, nowMs).count <= perEmail }
  }
}
