/** The trace of a request (W3C Trace Context): logged with it, and sent with the upstream calls made for it. */
import { AsyncLocalStorage } from 'node:async_hooks'

const current = new AsyncLocalStorage<string>()

/** Version 00, as the only one there is; an id of zeros alone is none. */
const traceparent = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/** The header as it came; null when there is none, or it does not fit: then it is as if it was not sent. */
export function readTrace(header: string | string[] | undefined): string | null {
  return typeof header === 'string' && traceparent.test(header) ? header : null
}

export function traceIdOf(trace: string): string {
  return trace.slice(3, 35)
}

/** Upstream calls within `work` carry the trace. */
export function withTrace<T>(trace: string | null, work: () => T): T {
  return trace === null ? work() : current.run(trace, work)
}

/** The headers of an upstream call. */
export function traceHeaders(): { traceparent?: string } {
  const trace = current.getStore()
  return trace === undefined ? {} : { traceparent: trace }
}
