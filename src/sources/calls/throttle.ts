/**
 * Limits the rate of calls to an upstream and how many run at once. Urgent calls go first. A slot is a moment at which one call may be
 * sent.
 */
import type { Urgency } from '../source.ts'

const urgencies: readonly Urgency[] = ['now', 'soon', 'slowly']

export interface Rates {
  perSecond: number
  /** Maximum rate of one kind of request. Default: `perSecond`. */
  perEndpoint?: number
  /** Maximum rate of all calls of urgency `slowly`. Default: `perSecond`. */
  slowlyPerSecond?: number
  inFlight?: number
}

const defaultInFlight = 64
/** Number of calls of urgency `now` that may run in addition to the others. So lists cannot block urgent calls. */
const urgentInFlight = 16
/** Tolerated delay of a timer. Slots missed during the delay are given out at once. */
const latenessMs = 5
/** Minimum distance between two slots, as a share of the average distance. Below 1, slots that a busy process missed can be caught up. */
const minDistanceShare = 0.75
/** Length of the rate's window. It is a little longer than a second, because a call may be sent some moments after its slot. */
const windowMs = 1_050

/** Enforces one rate. No second holds more slots than allowed, and the slots are spread over the second. */
class Gate {
  opensAt = 0
  private readonly perSecond: number
  /** Ring buffer of the times of the last slots, as many as one second may hold. */
  private readonly passed: Float64Array
  private position = 0

  constructor(perSecond: number) {
    this.perSecond = perSecond
    this.passed = new Float64Array(Math.max(1, Math.floor(perSecond))).fill(Number.NEGATIVE_INFINITY)
  }

  pass(now: number): void {
    const { passed, perSecond } = this
    passed[this.position] = now
    this.position = (this.position + 1) % passed.length
    const oldest = passed[this.position] as number
    const soonest = Math.max(this.opensAt, now - latenessMs) + (1000 / perSecond) * minDistanceShare
    this.opensAt = Math.max(soonest, oldest + (windowMs * passed.length) / perSecond)
  }
}

/** Functions that start the waiting calls, by endpoint. */
type Queues = Map<string, (() => void)[]>

export class Throttle {
  private readonly rates: Rates
  private readonly clock: () => number
  private readonly all: Gate
  private readonly slowly: Gate | null
  private readonly endpoints = new Map<string, Gate>()
  /** Waiting calls by urgency, the most urgent first. */
  private readonly waiting = new Map<Urgency, Queues>(urgencies.map(urgency => [urgency, new Map()]))
  private underWay = 0
  private pausedUntil = 0
  private timer: NodeJS.Timeout | undefined

  constructor(rates: Rates, clock = () => performance.now()) {
    this.rates = rates
    this.clock = clock
    this.all = new Gate(rates.perSecond)
    this.slowly = rates.slowlyPerSecond === undefined ? null : new Gate(rates.slowlyPerSecond)
  }

  /** Resolves when the call may be sent. The caller must call `done` when the call has ended. */
  take(endpoint: string, urgency: Urgency): Promise<void> {
    return new Promise(resolve => {
      const queues = this.waiting.get(urgency) as Queues
      const queue = queues.get(endpoint) ?? []
      queues.set(endpoint, queue)
      queue.push(resolve)
      this.advance()
    })
  }

  done(): void {
    this.underWay--
    this.advance()
  }

  pause(milliseconds: number): void {
    this.pausedUntil = Math.max(this.pausedUntil, this.clock() + milliseconds)
  }

  isPaused(): boolean {
    return this.pausedUntil > this.clock()
  }

  /** Starts every waiting call that may start now. A timer runs this again when another call may start. */
  private advance(): void {
    clearTimeout(this.timer)
    let nextMs = Number.POSITIVE_INFINITY
    for (const [urgency, queues] of this.waiting)
      for (const [endpoint, queue] of queues) {
        nextMs = Math.min(nextMs, this.startCalls(queue, urgency, this.gatesOf(endpoint, urgency)))
        if (queue.length === 0) queues.delete(endpoint)
      }
    if (nextMs < Number.POSITIVE_INFINITY) this.timer = setTimeout(() => this.advance(), nextMs)
  }

  /**
   * Starts the calls of one queue that may start now. Returns the milliseconds until another call
   * may start. Returns infinity when no call waits, or when a running call has to end first.
   */
  private startCalls(queue: (() => void)[], urgency: Urgency, gates: readonly Gate[]): number {
    const { inFlight = defaultInFlight } = this.rates
    const room = urgency === 'now' ? inFlight + urgentInFlight : inFlight
    while (queue.length > 0 && this.underWay < room) {
      const now = this.clock()
      const opensAt = Math.max(this.pausedUntil, ...gates.map(gate => gate.opensAt))
      if (opensAt > now) return opensAt - now
      for (const gate of gates) gate.pass(now)
      this.underWay++
      queue.shift()?.()
    }
    return Number.POSITIVE_INFINITY
  }

  private gatesOf(endpoint: string, urgency: Urgency): Gate[] {
    const gates = [this.all]
    const { perEndpoint } = this.rates
    if (perEndpoint !== undefined) {
      const gate = this.endpoints.get(endpoint) ?? new Gate(perEndpoint)
      this.endpoints.set(endpoint, gate)
      gates.push(gate)
    }
    if (urgency === 'slowly' && this.slowly !== null) gates.push(this.slowly)
    return gates
  }
}
