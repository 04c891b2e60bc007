/** Time-outs of requests on a stopped clock: Node keeps them apart from all other timers. */
import { Socket } from 'node:net'
import type { TestContext } from 'node:test'

export interface RequestTimeouts {
  /** Bytes that all requests since then received so far. */
  readonly received: number
}

/** What Node's sockets do, though no document tells of it. */
type WatchedSocket = Socket & { server?: object | null; _unrefTimer(): void }

/**
 * From now until the end of the test, the time that a request may wait for a byte passes with the clock, which was stopped before. A
 * server's own time-outs do not.
 */
export function stopRequestTimeouts(t: TestContext): RequestTimeouts {
  const node = Socket.prototype as WatchedSocket
  const [setUsual, refreshUsual] = [node.setTimeout, node._unrefTimer]
  const timers = new Map<Socket, NodeJS.Timeout>()
  t.mock.method(node, 'setTimeout', function (this: WatchedSocket, ms: number, listener?: () => void) {
    if (this.server) return setUsual.call(this, ms, listener)
    clearTimeout(timers.get(this))
    if (listener !== undefined && ms > 0) this.once('timeout', listener)
    if (listener !== undefined && ms === 0) this.off('timeout', listener)
    const fire = () => void (this.destroyed || this.emit('timeout'))
    timers.set(this, setTimeout(fire, ms > 0 ? ms : Number.POSITIVE_INFINITY))
    return this
  })
  t.mock.method(node, '_unrefTimer', function (this: WatchedSocket) {
    timers.get(this)?.refresh()
    refreshUsual.call(this)
  })
  return {
    get received() {
      return timers.keys().reduce((sum, { bytesRead }) => sum + bytesRead, 0)
    },
  }
}
