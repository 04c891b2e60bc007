/** Throttles calls: within the upstream's rates, urgent calls first, and never too many at once. */
import type { Urgency } from '../source.ts'

const urgencies: readonly Urgency[] = ['now', 'soon', 'slowly']

export interface Rates {
  perSecond: number
  /** For one kind of request. Default: as many as in all. */
  perEndpoint?: number
  /** For all slow requests. Default: as many as in all. */
  slowlyPerSecond?: number
  inFlight?: number
}

const defaultInFlight = 64
/** Urgent calls at once beyond the maximum: lists must not keep them out. */
const urgentInFlight = 16
/** Tolerated delay of a timer: turns missed meanwhile are made up for at once. */
const latenessMs = 5
/** The distance between two turns, as a share of what the rate gives. Below 1, turns that a busy process missed are made up for. */
const closeness = 0.75
/** A second and a little more: a call may be made some moments after its turn. */
const secondMs = 1_050

/** A rate: no second ever holds more turns than it may, nor are they all at its beginning. */
class Gate {
  opensAt = 0
  private readonly perSecond: number
  /** The moments of the last turns, as many as a second may hold, in a ring: each replaces the one that is that many turns older. */
  private readonly passed: Float64Array
  private place = 0

  constructor(perSecond: number) {
    this.perSecond = perSecond
    this.passed = new Float64Array(Math.max(1, Math.floor(perSecond))).fill(Number.NEGATIVE_INFINITY)
  }

  pass(now: number): void {
    const { passed, perSecond } = this
    passed[this.place] = now
    this.place = (this.place + 1) % passed.length
    const oldest = passed[this.place] as number
    const soonest = Math.max(this.opensAt, now - latenessMs) + (1000 / perSecond) * closeness
    this.opensAt = Math.max(soonest, oldest + (secondMs * passed.length) / perSecond)
  }
}

/** What resolves each call that waits, by its endpoint. */
type Queues = Map<string, (() => void)[]>

export class Throttle {
  private readonly rates: Rates
  private readonly clock: () => number
  private readonly all: Gate
  private readonly slowly: Gate | null
  private readonly endpoints = new Map<string, Gate>()
  /** The most urgent first. */
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

  /** Resolves when the call may be made. `done` must follow it. */
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

  /** Gives no turn until these milliseconds have passed. */
  pause(milliseconds: number): void {
    this.pausedUntil = Math.max(this.pausedUntil, this.clock() + milliseconds)
  }

  isPaused(): boolean {
    return this.pausedUntil > this.clock()
  }

  /** Lets go whatever may go now, and comes back when the next one may. */
  private advance(): void {
    clearTimeout(this.timer)
    let nextMs = Number.POSITIVE_INFINITY
    for (const [urgency, queues] of this.waiting)
      for (const [endpoint, queue] of queues) {
        nextMs = Math.min(nextMs, this.letGo(queue, urgency, this.gatesOf(endpoint, urgency)))
        if (queue.length === 0) queues.delete(endpoint)
      }
    if (nextMs < Number.POSITIVE_INFINITY) this.timer = setTimeout(() => this.advance(), nextMs)
  }

  /** Lets go of the queue whatever may go now. Returns the milliseconds until the next one may; infinite when another call has to end first. */
  private letGo(queue: (() => void)[], urgency: Urgency, gates: readonly Gate[]): number {
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

  /** The rates that a call has to keep. */
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
