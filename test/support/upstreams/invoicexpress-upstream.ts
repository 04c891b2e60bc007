/** A server in InvoiceXpress' place that answers by a script, and ways in which it may fail. */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { RequestListener, ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import { inspect } from 'node:util'
import type { UpstreamOutcome } from '../../../src/sources/calls/telemetry.ts'
import type { InvoiceXpressOptions } from '../../../src/sources/invoicexpress/client.ts'
import { SourceError, type SourceFailure } from '../../../src/sources/source.ts'
import { startUpstream, type Upstream } from './pdf-upstream.ts'

/** It must not be seen anywhere but in the query of a request to InvoiceXpress. */
export const apiKey = 'c4nary_k3y'

export interface InvoiceXpress extends Upstream {
  options: InvoiceXpressOptions
  /** The paths asked for so far, without their queries. */
  readonly paths: string[]
  /** What is answered from now on: each to one request, the last to all that follow. */
  script(first: RequestListener, ...others: RequestListener[]): void
}

export async function startInvoiceXpress(
  t: TestContext,
  ...script: [RequestListener, ...RequestListener[]]
): Promise<InvoiceXpress> {
  let steps: RequestListener[] = script
  const upstream = await startUpstream(t, (request, response) => {
    const [step] = steps
    if (steps.length > 1) steps = steps.slice(1)
    step?.(request, response)
  })
  return Object.defineProperties(upstream as InvoiceXpress, {
    options: { value: { account: null, apiKey, base: upstream.origin } },
    paths: { get: () => upstream.requests.map(({ url = '' }) => url.split('?')[0]) },
    script: {
      value: (...next: RequestListener[]) => {
        steps = next
      },
    },
  })
}

export function answer(body: unknown, status = 200, headers: Record<string, string> = {}): RequestListener {
  return (_request, response) =>
    void response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(typeof body === 'string' ? body : JSON.stringify(body))
}

/** No answer, but to a client that goes away. */
export const hang: RequestListener = () => {}

const drip = (response: ServerResponse) => {
  response.write(' ')
  const timer = setInterval(() => response.write(' '), 1_000)
  response.on('close', () => clearInterval(timer))
}

/** Each ends in a failure, whatever was asked; those that last end only with our patience. */
export const faults: Record<string, { listener: RequestListener; failure: SourceFailure }> = {
  reset: { listener: (_request, response) => void response.destroy(), failure: 'failed' },
  error_500: { listener: answer('oops', 500), failure: 'failed' },
  error_503: { listener: answer({ errors: { error: 'later' } }, 503), failure: 'failed' },
  html: { listener: answer('<html>InvoiceXpress</html>'), failure: 'failed' },
  empty: { listener: answer(''), failure: 'failed' },
  number: { listener: answer('17'), failure: 'failed' },
  text: { listener: answer('"done"'), failure: 'failed' },
  null: { listener: answer('null'), failure: 'failed' },
  array: { listener: answer([{ id: 1 }]), failure: 'failed' },
  no_keys: { listener: answer({}), failure: 'failed' },
  wrong_type: { listener: answer({ invoices: 'none', output: 'none' }), failure: 'failed' },
  errors_in_200: { listener: answer({ errors: [{ error: 'no' }] }), failure: 'failed' },
  errors_object_in_200: { listener: answer({ errors: { error: 'no' } }), failure: 'failed' },
  error_in_200: { listener: answer({ error: { code: 1, message: 'no' } }), failure: 'failed' },
  reason_in_200: { listener: answer({ reason: 'no' }), failure: 'failed' },
  truncated: {
    listener: (_request, response) => {
      response.writeHead(200, { 'content-length': 1_000 }).write('{"invoices": [', () => response.destroy())
    },
    failure: 'failed',
  },
  cut_off: {
    listener: (_request, response) => void response.write('{"invoices": [', () => response.destroy()),
    failure: 'failed',
  },
  upgrade: {
    listener: (_request, response) =>
      void response.socket?.end(
        'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
      ),
    failure: 'failed',
  },
  no_http: { listener: (_request, response) => void response.socket?.end('SSH-2.0\r\n'), failure: 'failed' },
  huge: {
    listener: (_request, response) => {
      const chunk = Buffer.alloc(1024 * 1024, ' ')
      const push = () => {
        while (!response.destroyed && response.write(chunk));
      }
      response.on('drain', push)
      push()
    },
    failure: 'failed',
  },
  hang: { listener: hang, failure: 'timeout' },
  slow_body: { listener: (_request, response) => drip(response), failure: 'timeout' },
}

/** Asserts a `SourceError` in our own words: nothing in it tells the key or an address, but where it could not be reached. */
export function assertOurWords(error: unknown): asserts error is SourceError {
  assert.ok(error instanceof SourceError, inspect(error))
  assert.equal(error.cause, undefined)
  const everything = inspect(error, { depth: 20, showHidden: true }) + JSON.stringify(error) + error.stack
  assert.doesNotMatch(withoutOrigin(everything), /c4nary|api_key|127\.0\.0\.1|localhost|https?:\/\//)
}

/** Without where it could not be reached, which operators are to see. */
export function withoutOrigin(text: string): string {
  return text.replaceAll(/could not be reached at https?:\/\/[\w.:]+ \(/g, '')
}

export async function failureOf(outcome: Promise<unknown>): Promise<SourceError> {
  const error = await outcome.then(
    value => assert.fail(`no error: ${inspect(value)}`),
    error => error,
  )
  assertOurWords(error)
  return error
}

/** What became of each call to an upstream from now on, once this process has its answer. */
export function countCalls(t: TestContext): UpstreamOutcome[] {
  const outcomes: UpstreamOutcome[] = []
  const note = (called: unknown) => void outcomes.push((called as { outcome: UpstreamOutcome }).outcome)
  subscribe('fatura:upstream-called', note)
  t.after(() => unsubscribe('fatura:upstream-called', note))
  return outcomes
}
