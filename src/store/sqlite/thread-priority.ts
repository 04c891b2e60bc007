/**
 * Lowers the priority of search threads. When a page and a search need the same core, the page goes first. Only Linux has priorities for
 * single threads.
 */
import { readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

const isLinux = process.platform === 'linux'
const lowPriority = 10

/**
 * Lowers the priority of this thread. If the system forbids it, the thread keeps its priority, and `findPriorityObstacle` returns the
 * reason.
 */
export function lowerThisThread(): void {
  if (!isLinux) return
  try {
    const threadId = readlinkSync('/proc/thread-self').split('/').at(-1)
    setPriority(Number(threadId), lowPriority)
  } catch {
    // The thread keeps its priority. The process that starts the threads logs the reason once.
  }
}

/**
 * Returns why the priority of threads cannot be lowered, for example because system calls are filtered. Null when it can be lowered, and on
 * systems without such priorities.
 */
export function findPriorityObstacle(): Error | null {
  if (!isLinux) return null
  try {
    setPriority(getPriority())
    return null
  } catch (error) {
    return error as Error
  }
}
