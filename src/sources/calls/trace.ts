/** The trace of a request (W3C Trace Context). It is logged with the request and sent with the request's upstream calls. */
import { AsyncLocalStorage } from 'node:async_hooks'

const current = new AsyncLocalStorage<string>()

/** A valid `traceparent` header. Version 00 is the only version. An id of zeros alone is invalid. */
const traceparent = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/** Returns the header unchanged. Null when the header is absent or invalid. */
export function readTrace(header: string | string[] | undefined): string | null {
  return typeof header === 'string' && traceparent.test(header) ? header : null
}

export function traceIdOf(trace: string): string {
  return trace.slice(3, 35)
}

/** Runs `work`. Upstream calls that `work` makes carry the trace. */
export function withTrace<T>(trace: string | null, work: () => T): T {
  return trace === null ? work() : current.run(trace, work)
}

export function traceHeaders(): { traceparent?: string } {
  const trace = current.getStore()
  return trace === undefined ? {} : { traceparent: trace }
}
