/** A server that PDFs come from, or must not come from: it writes down what it is asked, and how much it sent. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { fetchPdf, type PdfGuard } from '../../../src/sources/pdf/fetch-pdf.ts'
import { type Pdf, SourceError, type SourceFailure } from '../../../src/sources/source.ts'
import { eventually } from '../clients/cli.ts'

export interface Upstream {
  /** As in http://127.0.0.1:12345. */
  origin: string
  port: number
  requests: IncomingMessage[]
  /** Connections so far, those that sent no request included. */
  readonly connections: number
  /** Connections that are open now. */
  readonly open: number
  /** Bytes that left this process so far, over all connections. */
  readonly sent: number
}

export interface UpstreamOptions {
  host?: string
  certificate?: { key: string; cert: string }
}

export async function startUpstream(
  t: TestContext,
  answer: RequestListener,
  { host = '127.0.0.1', certificate }: UpstreamOptions = {},
): Promise<Upstream> {
  const requests: IncomingMessage[] = []
  const sockets: Socket[] = []
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    requests.push(request)
    answer(request, response)
  }
  const server = certificate ? createSecureServer(certificate, listener) : createServer(listener)
  // How long a connection is kept is the test's affair.
  server.keepAliveTimeout = 0
  server.on('connection', socket => {
    sockets.push(socket)
    socket.on('error', () => {})
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const { port } = server.address() as AddressInfo
  return {
    origin: `${certificate ? 'https' : 'http'}://${host}:${port}`,
    port,
    requests,
    get connections() {
      return sockets.length
    },
    get open() {
      return sockets.filter(socket => !socket.destroyed).length
    },
    get sent() {
      return sockets.reduce((sum, socket) => sum + socket.bytesWritten - socket.writableLength, 0)
    },
  }
}

/** A PDF's first bytes and then random ones, of that length: a part in another's place is seen. */
export function makePdf(length: number): Buffer {
  return Buffer.concat([Buffer.from('%PDF-1.7\n'), randomBytes(length - 9)])
}

/** Sends zeros after a PDF's first bytes, for as long as they are taken. */
export function sendEndlessly(response: ServerResponse): void {
  const chunk = Buffer.alloc(65_536)
  response.write('%PDF-1.7\n')
  const push = () => {
    while (!response.destroyed && response.write(chunk));
  }
  response.on('drain', push)
  push()
}

/** Waits until the upstream can send no more; returns the bytes that it sent. */
export async function untilHeld(upstream: Upstream): Promise<number> {
  let sent = -1
  await eventually('the upstream is held', async () => {
    const last = sent
    sent = upstream.sent
    await sleep(100)
    return upstream.sent === last
  })
  return sent
}

export const secret = 'c4nary_s3cret'

export interface GetOptions extends Partial<PdfGuard> {
  path?: string
  signal?: AbortSignal
}

/** Fetches from an upstream that is allowed unless told otherwise, by a URL that must not be seen again. */
export function get(
  upstream: Upstream,
  { path = `/${secret}?token=${secret}`, signal, ...guard }: GetOptions = {},
): Promise<Pdf> {
  return fetchPdf(
    upstream.origin + path,
    { origins: [upstream.origin], allowPrivate: true, ...guard },
    signal ?? new AbortController().signal,
  )
}

/** Asserts a `SourceError` of that kind in which nothing tells where the PDF lies. */
export async function assertFails(
  outcome: Promise<unknown>,
  failure: SourceFailure,
  message: RegExp,
): Promise<void> {
  const error = await outcome.then(
    () => assert.fail('no error'),
    error => error,
  )
  assertRedacted(error)
  assert.match(error.message, message)
  assert.equal(error.failure, failure)
}

export function assertRedacted(error: unknown): void {
  assert.ok(error instanceof SourceError, inspect(error))
  assert.equal(error.cause, undefined)
  const everything = inspect(error, { depth: 20, showHidden: true }) + JSON.stringify(error) + error.stack
  assert.doesNotMatch(everything, /c4nary|token=|127\.0\.0\.1|localhost|http:\/\/|https:\/\//)
}

export async function readAll({ body }: Pdf): Promise<Buffer> {
  return buffer(body as Readable)
}
