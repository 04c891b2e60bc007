/** An outage of the store in the log: a line when it begins, one a minute with a count, one when it ends. */
import type { Logger } from 'pino'

/** Between two lines on an outage. */
const everyMs = 60_000
/** A success so long after the last failure ends it: one in between is no end of it. */
const quietMs = 5_000

export class StoreOutage {
  private readonly log: Logger
  private readonly now: () => number
  /** Moments of this outage; null: there is none. */
  private current: { beganAt: number; failedAt: number; toldAt: number } | null = null
  private failedInAll = 0
  private failedSinceTold = 0

  constructor(log: Logger, now = () => performance.now()) {
    this.log = log
    this.now = now
  }

  /** A request failed because the store could not be read. */
  noteFailure(requestId: string, err: Error): void {
    const now = this.now()
    if (this.current === null) {
      this.log.warn({ request_id: requestId, err }, 'the store cannot be read: requests get 503')
      this.current = { beganAt: now, failedAt: now, toldAt: now }
      this.failedInAll = 0
      this.failedSinceTold = 0
    }
    this.current.failedAt = now
    this.failedInAll++
    this.failedSinceTold++
    if (now - this.current.toldAt < everyMs) return
    // Its words may be others by now.
    const { message: reason } = err
    this.log.warn({ failed: this.failedSinceTold, reason }, 'the store still cannot be read')
    this.current.toldAt = now
    this.failedSinceTold = 0
  }

  /** A request was answered from the store. */
  noteSuccess(): void {
    if (this.current === null) return
    const now = this.now()
    if (now - this.current.failedAt < quietMs) return
    const seconds = Math.round((this.current.failedAt - this.current.beganAt) / 1_000)
    this.log.warn({ failed: this.failedInAll, seconds }, 'the store can be read again')
    this.current = null
  }
}
