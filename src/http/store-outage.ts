/**
 * Logs an outage of the store: one line when it begins, one line per minute with a count, and one line when it ends.
 */
import type { Logger } from 'pino'

const reportEveryMs = 60_000
/** An outage ends with the first success that comes this long after the last failure. */
const quietMs = 5_000

export class StoreOutage {
  private readonly log: Logger
  private readonly now: () => number
  /** Times of the current outage. Null when there is none. */
  private current: { beganAt: number; failedAt: number; reportedAt: number } | null = null
  private failedInAll = 0
  private failedSinceReport = 0

  constructor(log: Logger, now = () => performance.now()) {
    this.log = log
    this.now = now
  }

  recordFailure(requestId: string, err: Error): void {
    const now = this.now()
    if (this.current === null) {
      this.log.warn({ request_id: requestId, err }, 'the store cannot be read: requests get 503')
      this.current = { beganAt: now, failedAt: now, reportedAt: now }
      this.failedInAll = 0
      this.failedSinceReport = 0
    }
    this.current.failedAt = now
    this.failedInAll++
    this.failedSinceReport++
    if (now - this.current.reportedAt < reportEveryMs) return
    // The reason may change during an outage, so each line names the latest reason.
    const { message: reason } = err
    this.log.warn({ failed: this.failedSinceReport, reason }, 'the store still cannot be read')
    this.current.reportedAt = now
    this.failedSinceReport = 0
  }

  recordSuccess(): void {
    if (this.current === null) return
    const now = this.now()
    if (now - this.current.failedAt < quietMs) return
    const seconds = Math.round((this.current.failedAt - this.current.beganAt) / 1_000)
    this.log.warn({ failed: this.failedInAll, seconds }, 'the store can be read again')
    this.current = null
  }
}
