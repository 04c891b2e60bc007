/** Where a page and a search want the same core, the page goes first. Only Linux gives a thread a priority of its own. */
import { readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

const isLinux = process.platform === 'linux'
const lessThanUsual = 10

/** Lowers this thread. Where that is forbidden, it goes on as fast as the others: `findPriorityObstacle` tells. */
export function lowerThisThread(): void {
  if (!isLinux) return
  try {
    const threadId = readlinkSync('/proc/thread-self').split('/').at(-1)
    setPriority(Number(threadId), lessThanUsual)
  } catch {
    // Told once, by the process that starts the threads.
  }
}

/** Why no thread can be lowered here, such as a filter of system calls; null when one can, or when the system knows no such thing. */
export function findPriorityObstacle(): Error | null {
  if (!isLinux) return null
  try {
    setPriority(getPriority())
    return null
  } catch (error) {
    return error as Error
  }
}
