/**
 * Detects overload, and which requests are excess. The event loop takes the requests that arrived in turns, one after
 * the other: a turn that lasts long means that requests wait long. When turns stay long, each serves for a while, and the
 * others that are waiting are excess. See docs/decisions/0010-shedding-by-turns.md.
 */

/** Time for which a turn serves requests. */
const maxTurnMs = 35

/** Requests that a turn serves in any case: so few at once are no overload, however slow the machine is. */
const minServed = 32

/** Time for which turns must stay long before requests are shed, and then short to end it: one alone may be a pause of the machine. */
const patienceMs = 1_000

/** Time between two long turns, at most, for them to follow one another: over a database, answers have short turns in between. */
const gapMs = 250

/** One in this many requests has its turn measured, until a turn is long: then every turn is. */
const measuredEvery = 16

export function watchEventLoop() {
  let requests = 0
  /** -1 while no turn is measured. */
  let turnBegan = -1
  let served = 0
  /** Since when long turns follow one another, and when the last of them ended. */
  let longSince = Number.POSITIVE_INFINITY
  let lastLong = 0
  let sheds = false

  function beginTurn(): void {
    turnBegan = performance.now()
    served = 1
    if (turnBegan - lastLong > (sheds ? patienceMs : gapMs)) {
      longSince = Number.POSITIVE_INFINITY
      sheds = false
    }
    setImmediate(freeSlot)
  }

  function freeSlot(): void {
    const now = performance.now()
    if (now - turnBegan >= maxTurnMs) {
      longSince = Math.min(longSince, turnBegan)
      lastLong = now
    }
    turnBegan = -1
  }

  /** Counts a request that arrived; whether it is to be refused. */
  function isExcess(): boolean {
    if (turnBegan === -1) {
      if (++requests % measuredEvery === 0 || longSince !== Number.POSITIVE_INFINITY) beginTurn()
      return false
    }
    if (++served <= minServed) return false
    const now = performance.now()
    if (now - turnBegan <= maxTurnMs) return false
    sheds ||= now - Math.min(longSince, turnBegan) > patienceMs
    return sheds
  }

  return { isExcess }
}
