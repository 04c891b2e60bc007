/** Clocks that stand still unless a test moves them, however busy the machine is. */
import { after, mock } from 'node:test'

/** The calendar is given to what is tested; the monotonic clock is the process's own. Call it anew for another beginning. */
export function stopBothClocks() {
  mock.restoreAll()
  const [begun, elapsed] = [Date.now(), performance.now()]
  const clock = { offsetMs: 0 }
  mock.method(performance, 'now', () => elapsed + clock.offsetMs)
  return { clock, begun, now: () => begun + clock.offsetMs }
}

after(() => mock.restoreAll())
