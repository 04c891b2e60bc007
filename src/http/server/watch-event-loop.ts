/**
 * Detects overload and decides which requests are excess. The event loop takes arrived requests in turns, one turn
 * after the other. A long turn means that requests wait long. While turns stay long, each turn serves requests for
 * `maxTurnMs`, and the other waiting requests are excess. See docs/decisions/0010-shedding-by-turns.md.
 */

/** Milliseconds for which one turn of the event loop serves requests during an overload. */
const maxTurnMs = 35

/**
 * Number of requests that each turn of the event loop serves in any case. So few requests are no overload, however
 * slow the machine is.
 */
const minServed = 32

/**
 * Requests are shed once turns of the event loop were long for this time, until turns were short for this time. A
 * single long turn may be a pause of the machine.
 */
const patienceMs = 1_000

/** Maximum time between two long turns of one series. Answers from a database cause short turns in between. */
const gapMs = 250

/** One in this many requests starts the measurement of a turn. After a long turn, every turn is measured. */
const measuredEvery = 16

export function watchEventLoop() {
  let requests = 0
  /** Start of the measured turn, or -1 while no turn is measured. */
  let turnStart = -1
  let served = 0
  /** `longSince` is the start of a series of long turns. `lastLong` is the end of its last turn. */
  let longSince = Number.POSITIVE_INFINITY
  let lastLong = 0
  let isShedding = false

  function beginTurn(): void {
    turnStart = performance.now()
    served = 1
    if (turnStart - lastLong > (isShedding ? patienceMs : gapMs)) {
      longSince = Number.POSITIVE_INFINITY
      isShedding = false
    }
    setImmediate(endTurn)
  }

  function endTurn(): void {
    const now = performance.now()
    if (now - turnStart >= maxTurnMs) {
      longSince = Math.min(longSince, turnStart)
      lastLong = now
    }
    turnStart = -1
  }

  /** Counts a request that arrived. Returns whether it must be refused. */
  function isExcess(): boolean {
    if (turnStart === -1) {
      if (++requests % measuredEvery === 0 || longSince !== Number.POSITIVE_INFINITY) beginTurn()
      return false
    }
    if (++served <= minServed) return false
    const now = performance.now()
    if (now - turnStart <= maxTurnMs) return false
    isShedding ||= now - Math.min(longSince, turnStart) > patienceMs
    return isShedding
  }

  return { isExcess }
}
