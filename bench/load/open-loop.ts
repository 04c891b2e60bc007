/** Sends requests at a given rate from another process, whether or not answers come. */
import { constants, setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { type LoadRequest, runGenerator } from './load.ts'

export interface OpenLoopOptions {
  address: string
  requests: readonly LoadRequest[]
  ratePerSecond: number
  seconds: number
  /** When as many wait for their answers, a request that is due is not sent, and counts as such. */
  maxConnections: number
  /** How many of them are open before the first request is due; the others are opened when they are needed. */
  openFirst?: number
  /** What is due within the first so many seconds is sent, and not counted. */
  leadSeconds?: number
}

export interface OpenLoopResult {
  seconds: number
  /** Due, but there was no connection to send it on. */
  unsent: number
  /** Sent, and not answered. */
  failed: number
  /** Answers of status 503 without `Retry-After`. */
  withoutRetryAfter: number
  /** Latencies in milliseconds, from when a request was due to the end of its answer. */
  byStatus: readonly { status: number; count: number; p50: number; p99: number; max: number }[]
  /** How much of one core the load itself took. */
  busy: number
}

const generator = fileURLToPath(new URL('open-loop-generator.ts', import.meta.url))

export function runOpenLoop(options: OpenLoopOptions): Promise<OpenLoopResult> {
  return runGenerator(generator, options, goFirst)
}

/**
 * Clients have machines of their own. Here they share the cores with the service, and what a client waits for a core would
 * count as the service's. Needs the rights of root; without them, latencies hold this time too.
 */
function goFirst(pid: number | undefined): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_HIGHEST)
  } catch {
    // Not allowed here.
  }
}

/** The answers of one status; none is zero of them. */
export function answersOf({ byStatus }: OpenLoopResult, status: number) {
  return (
    byStatus.find(one => one.status === status) ?? {
      status,
      count: 0,
      p50: Number.NaN,
      p99: Number.NaN,
      max: Number.NaN,
    }
  )
}
