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

type Gate = ReturnType<typeof createGate>

/** A rate: no second ever holds more turns than it may, nor are they all at its beginning. */
function createGate(perSecond: number) {
  const spacingMs = (1000 / perSecond) * closeness
  /** The moments of the last turns, as many as a second may hold, in a ring: each replaces the one that is that many turns older. */
  const passed = new Float64Array(Math.max(1, Math.floor(perSecond))).fill(Number.NEGATIVE_INFINITY)
  let place = 0
  const gate = {
    opensAt: 0,
    pass(now: number): void {
      passed[place] = now
      place = (place + 1) % passed.length
      const oldest = passed[place] as number
      const soonest = Math.max(gate.opensAt, now - latenessMs) + spacingMs
      gate.opensAt = Math.max(soonest, oldest + (secondMs * passed.length) / perSecond)
    },
  }
  return gate
}

export function createThrottle(rates: Rates, clock: () => number = () => performance.now()) {
  const { perSecond, perEndpoint, slowlyPerSecond, inFlight = usualInFlight } = rates
  const all = createGate(perSecond)
  const slowly = slowlyPerSecond === undefined ? null : createGate(slowlyPerSecond)
  const endpoints = new Map<string, Gate>()
  const waiting = new Map(urgencies.map(urgency => [urgency, new Map<string, (() => void)[]>()]))
  let underWay = 0
  let pausedUntil = 0
  let timer: NodeJS.Timeout | undefined

  function gatesOf(endpoint: string, urgency: Urgency): Gate[] {
    const gates = [all]
    if (perEndpoint !== undefined) {
      const gate = endpoints.get(endpoint) ?? createGate(perEndpoint)
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
