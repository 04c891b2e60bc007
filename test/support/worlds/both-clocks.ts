/** Clocks that stand still unless a test moves them, however busy the machine is. */
import { after } from 'node:test'

const elapsed = performance.now

/** The calendar is given to what is tested; the monotonic clock is the process's own. Call it anew for another beginning. */
export function stopBothClocks() {
  const [begun, begunMs] = [Date.now(), elapsed.call(performance)]
  const clock = { offsetMs: 0 }
  // No mock: it would keep every call, and the clock is read a hundred thousand times.
  setElapsed(() => begunMs + clock.offsetMs)
  return { clock, begun, now: () => begun + clock.offsetMs }
}

function setElapsed(value: () => number): void {
  Object.defineProperty(performance, 'now', { value, configurable: true, writable: true })
}

after(() => setElapsed(elapsed))
