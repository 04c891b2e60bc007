/** How often links may be asked for. */
import { networkOf } from '../access/lookup-guard.ts'
import { createWindows, secondsLeft } from '../access/windows.ts'

const seconds = 3_600
export const perEmail = 3
export const perSource = 20

/** `send` is false where nothing is to be sent, which nobody is told. */
export type Counted = { refusedSeconds: number } | { send: boolean }

/** In memory: each process counts for itself. `nowMs` is of the monotonic clock. */
export function createSignInLimits(): (email: string, address: string, nowMs: number) => Counted {
  const sources = createWindows(seconds)
  const emails = createWindows(seconds)
  return (email, address, nowMs) => {
    const source = sources.add(networkOf(address), nowMs)
    if (source.count > perSource) return { refusedSeconds: secondsLeft(source, nowMs) }
    return { send: emails.add(email, nowMs).count <= perEmail }
  }
}
