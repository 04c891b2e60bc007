/** Time-outs of requests on a stopped clock: Node keeps them apart from all other timers. */
import { Socket } from 'node:net'
import type { TestContext } from 'node:test'

/** What Node's sockets do, though no document tells of it. */
type WatchedSocket = Socket & { server?: object | null; _onTimeout(): void; _unrefTimer(): void }

/**
 * From now until the end of the test, the time without a byte that a request may take passes with the clock, which was stopped before.
 * A server's own time-outs go on as they do.
 */
export function stopRequestTimeouts(t: TestContext): void {
  const node = Socket.prototype as WatchedSocket
  const [setUsual, refreshUsual] = [node.setTimeout, node._unrefTimer]
  const timers = new WeakMap<Socket, NodeJS.Timeout>()
  t.mock.method(node, 'setTimeout', function (this: WatchedSocket, ms: number, listener?: () => void) {
    if (this.server) return setUsual.call(this, ms, listener)
    clearTimeout(timers.get(this))
    this.timeout = ms
    if (ms > 0) {
      if (listener !== undefined) this.once('timeout', listener)
      const fire = () => {
        if (!this.destroyed) this.emit('timeout')
      }
      timers.set(this, setTimeout(fire, ms))
    } else if (listener !== undefined) this.off('timeout', listener)
    return this
  })
  t.mock.method(node, '_unrefTimer', function (this: WatchedSocket) {
    timers.get(this)?.refresh()
    refreshUsual.call(this)
  })
}
