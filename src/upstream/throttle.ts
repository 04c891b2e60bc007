/** Throttles calls: within the upstream's rates, urgent calls first, and never too many at once. */
import type { Urgency } from '../sources.ts'

const urgencies: readonly Urgency[] = ['now', 'soon', 'slowly']

export interface Rates {
  perSecond: number
  /** For one kind of request. Default: as many as in all. */
  perEndpoint?: number
  /** For all slow requests. Default: as many as in all. */
  slowlyPerSecond?: number
  inFlight?: number
}

const usualInFlight = 64
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
  private readonly spacingMs: number
  /** The moments of the last turns, as many as a second may hold, in a ring: each replaces the one that is that many turns older. */
  private readonly passed: Float64Array
  private place = 0

  constructor(perSecond: number) {
    this.perSecond = perSecond
    this.spacingMs = (1000 / perSecond) * closeness
    this.passed = new Float64Array(Math.max(1, Math.floor(perSecond))).fill(Number.NEGATIVE_INFINITY)
  }

  pass(now: number): void {
    this.passed[this.place] = now
    this.place = (this.place + 1) % this.passed.length
    const oldest = this.passed[this.place] as number
    const soonest = Math.max(this.opensAt, now - latenessMs) + this.spacingMs
    this.opensAt = Math.max(soonest, oldest + (secondMs * this.passed.length) / this.perSecond)
  }
}

export function createThrottle(rates: Rates, clock: () => number = () => performance.now()) {
  const { perSecond, perEndpoint, slowlyPerSecond, inFlight = usualInFlight } = rates
  const all = new Gate(perSecond)
  const slowly = slowlyPerSecond === undefined ? null : new Gate(slowlyPerSecond)
  const endpoints = new Map<string, Gate>()
  const waiting = new Map(urgencies.map(urgency => [urgency, new Map<string, (() => void)[]>()]))
  let underWay = 0
  let pausedUntil = 0
  let timer: NodeJS.Timeout | undefined

  function gatesOf(endpoint: string, urgency: Urgency): Gate[] {
    const gates = [all]
    if (perEndpoint !== undefined) {
      const gate = endpoints.get(endpoint) ?? new Gate(perEndpoint)
      endpoints.set(endpoint, gate)
      gates.push(gate)
    }
    if (urgency === 'slowly' && slowly !== null) gates.push(slowly)
    return gates
  }

  /** Lets go whatever may go now, and comes back when the next one may. */
  function advance(): void {
    clearTimeout(timer)
    timer = undefined
    let next = Number.POSITIVE_INFINITY
    for (const [urgency, queues] of waiting) {
      const room = urgency === 'now' ? inFlight + urgentInFlight : inFlight
      for (const [endpoint, queue] of queues) {
        const gates = gatesOf(endpoint, urgency)
        while (queue.length > 0 && underWay < room) {
          const now = clock()
          const opensAt = Math.max(pausedUntil, ...gates.map(gate => gate.opensAt))
          if (opensAt > now) {
            next = Math.min(next, opensAt - now)
            break
          }
          for (const gate of gates) gate.pass(now)
          underWay++
          queue.shift()?.()
        }
        if (queue.length === 0) queues.delete(endpoint)
      }
    }
    if (next < Number.POSITIVE_INFINITY) timer = setTimeout(advance, next)
  }

  return {
    /** Resolves when the call may be made. `done` must follow it. */
    take(endpoint: string, urgency: Urgency): Promise<void> {
      return new Promise(resolve => {
        const queues = waiting.get(urgency) as Map<string, (() => void)[]>
        const queue = queues.get(endpoint) ?? []
        queues.set(endpoint, queue)
        queue.push(resolve)
        advance()
      })
    },
    done() {
      underWay--
      advance()
    },
    /** Gives no turn until these milliseconds have passed. */
    pause(milliseconds: number) {
      pausedUntil = Math.max(pausedUntil, clock() + milliseconds)
    },
    isPaused: () => pausedUntil > clock(),
  }
}
