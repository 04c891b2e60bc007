/** The guarded client through which every PDF of an upstream comes: an upstream's URL is not to be trusted. */
import type { IncomingMessage } from 'node:http'
import { isIP, type OnReadOpts, type Socket } from 'node:net'
import { finished, type Readable, Transform } from 'node:stream'
import { pdfPassed } from '../calls/telemetry.ts'
import { type Pdf, SourceError } from '../source.ts'
import { isAllowed } from './allowed-origins.ts'
import { isPublicAddress, NoResponse, refuseAddress, requestOnce } from './public-address.ts'

const signatures = {
  'application/pdf': Buffer.from('%PDF-'),
  'image/png': Buffer.from('89504e470d0a1a0a', 'hex'),
  /** Any: its reader checks it. */
  '*/*': Buffer.alloc(0),
}
type FileType = keyof typeof signatures

export interface PdfGuard {
  /** Origins a PDF may come from: scheme, host and port, exactly; a host may begin with "*." for its subdomains. */
  origins: readonly string[]
  /** Whether private and loopback addresses may be connected to: for the sandbox only. */
  allowPrivate: boolean
  maximumBytes?: number
  /** From the first request to the last byte read. Default: 30,000. */
  deadlineMs?: number
  /** Without a byte: a large file's deadline may be an hour away. Default: 30,000. */
  idleMs?: number
  type?: FileType
}

const maximumRedirects = 3

/** Default Retry-After, in seconds, after a failure that may pass. */
const retry = { retryAfter: 5 }
const maxRetryAfterSeconds = 60

const headers = { 'accept-encoding': 'identity', 'user-agent': 'fatura' }

/**
 * Resolves once the first bytes proved to be a PDF's. Rejects with a `SourceError`: `missing`, `timeout` or `failed`.
 * A later failure destroys the body with one: a body that ends was whole. The URL is in no error, for it may open
 * the PDF to whoever reads it; nor is a cause, for Node's errors name the host.
 */
export async function fetchPdf(url: string, guard: PdfGuard, signal: AbortSignal): Promise<Pdf> {
  const { maximumBytes = 25 * 1024 * 1024, deadlineMs = 30_000, type = 'application/pdf' } = guard
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(new DOMException('late', 'TimeoutError')), deadlineMs)
  const ended = AbortSignal.any([signal, deadline.signal])
  try {
    const response = await follow(URL.parse(url), guard, ended)
    try {
      const size = readSize(response, maximumBytes)
      const body = await openBody(response, maximumBytes, type, ended)
      finished(body, () => clearTimeout(timer))
      return { body, size }
    } catch (error) {
      response.destroy()
      throw error
    }
  } catch (error) {
    clearTimeout(timer)
    throw redact(error, ended)
  }
}

/** The first answer that is no redirect. Each hop is checked before anything is sent there. */
async function follow(start: URL | null, guard: PdfGuard, signal: AbortSignal): Promise<IncomingMessage> {
  const { allowPrivate, type = 'application/pdf', idleMs = 30_000 } = guard
  let url = start
  for (let redirects = 0; redirects <= maximumRedirects; redirects++) {
    check(url, guard)
    const options = {
      headers: { accept: type, ...headers },
      timeout: idleMs,
      signal,
      onread: readIntoOneBuffer(),
    }
    const response = await requestOnce(url, allowPrivate, options)
    if (![301, 302, 303, 307, 308].includes(response.statusCode ?? 0)) return response
    response.destroy()
    const { location } = response.headers
    url = location === undefined ? null : URL.parse(location, url)
  }
  throw new SourceError('failed', `The PDF is behind more than ${maximumRedirects} redirects.`)
}

/** Node's parser copies what it passes on. Without this, every 64 KB of a PDF leave two buffers for the garbage collector. */
function readIntoOneBuffer(): OnReadOpts {
  return {
    buffer: Buffer.allocUnsafeSlow(64 * 1024),
    callback(this: Socket, length, buffer) {
      this.emit('data', buffer.subarray(0, length))
      return true
    },
  }
}

function check(url: URL | null, { origins, allowPrivate }: PdfGuard): asserts url is URL {
  if (url === null) throw new SourceError('failed', 'The address of the PDF is not a URL.')
  if (url.username !== '' || url.password !== '')
    throw new SourceError('failed', 'The address of the PDF contains a user name or a password.')
  if (!isAllowed(url, origins))
    throw new SourceError('failed', 'The PDF is at an origin that is not allowed.')
  // A name is checked when it is resolved; Node resolves no literal address.
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (!allowPrivate && isIP(host) !== 0 && !isPublicAddress(host)) throw refuseAddress()
}

/** The declared size, or null. Throws unless the answer can hold a whole PDF. */
function readSize({ statusCode, headers }: IncomingMessage, maximumBytes: number): number | null {
  if (statusCode === 404 || statusCode === 410)
    throw new SourceError('missing', 'The server no longer has the PDF.')
  if (statusCode !== 200) throw refuseStatus(statusCode, headers['retry-after'])
  if (!/^(identity)?$/i.test(headers['content-encoding'] ?? ''))
    throw new SourceError('failed', 'The PDF was sent in an encoding that was not requested.')
  const length = headers['content-length']
  // Then the connection's end is the body's, and a PDF that was cut off looks whole.
  if (length === undefined && headers['transfer-encoding'] === undefined)
    throw new SourceError('failed', 'The PDF was sent without a length or chunks, so it may be incomplete.')
  if (length === undefined) return null
  if (Number(length) > maximumBytes) throw tooLarge()
  return Number(length)
}

/** A fault of the request itself does not pass, so it gets no Retry-After. */
function refuseStatus(status = 0, retryAfter: string | undefined): SourceError {
  const message = `The server of the PDF answered ${status}.`
  if (status < 500 && status !== 429) return new SourceError('failed', message)
  const seconds = /^[1-9]\d{0,3}$/.test(retryAfter ?? '') ? Number(retryAfter) : retry.retryAfter
  return new SourceError('failed', message, { retryAfter: Math.min(seconds, maxRetryAfterSeconds) })
}

function openBody(response: IncomingMessage, maximumBytes: number, type: FileType, signal: AbortSignal) {
  return new Promise<Readable>((resolve, reject) => {
    const body = createPdfCheck(maximumBytes, type, () => resolve(body))
    const stop = () => body.destroy(explainAbort(signal))
    signal.addEventListener('abort', stop, { once: true })
    finished(response, { writable: false }, error => {
      if (error) body.destroy(redact(error, signal))
    })
    // Stays for as long as the body: an error that comes before its reader listens must not end the process.
    body.on('error', reject)
    body.once('close', () => {
      signal.removeEventListener('abort', stop)
      response.destroy()
    })
    if (signal.aborted) stop()
    else response.pipe(body)
  })
}

/** Passes a file through; fails once it is none of its type or too large. Calls `proven` once, with the first bytes that show it. */
function createPdfCheck(maximumBytes: number, type: FileType, proven: () => void): Transform {
  const signature = signatures[type]
  let head: Buffer | null = Buffer.alloc(0)
  let received = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      received += chunk.length
      if (received > maximumBytes) return done(tooLarge())
      if (type === 'application/pdf' && pdfPassed.hasSubscribers) pdfPassed.publish({ bytes: chunk.length })
      if (head === null) return done(null, chunk)
      head = Buffer.concat([head, chunk])
      if (!head.subarray(0, signature.length).equals(signature.subarray(0, head.length))) return done(noPdf())
      if (head.length < signature.length) return done()
      const start = head
      head = null
      done(null, start)
      proven()
    },
    flush: done => done(head === null ? null : noPdf()),
  })
}

function noPdf(): SourceError {
  return new SourceError('failed', 'The response is not a PDF.')
}

function tooLarge(): SourceError {
  return new SourceError('failed', 'The PDF is larger than allowed.')
}

function explainAbort({ reason }: AbortSignal): SourceError {
  return reason instanceof Error && reason.name === 'TimeoutError'
    ? overdue()
    : new SourceError('failed', 'The request for the PDF was canceled.')
}

function overdue(): SourceError {
  return new SourceError('timeout', 'The PDF did not arrive in time.', retry)
}

/** Keeps only the code of an error of Node or the network. */
function redact(error: unknown, signal: AbortSignal): SourceError {
  if (signal.aborted) return explainAbort(signal)
  if (error instanceof SourceError) return error
  if (error instanceof NoResponse)
    return new SourceError('failed', 'The server of the PDF closed the connection without a response.', retry)
  const { code } = error as { code?: unknown }
  if (code === 'ETIMEDOUT') return overdue()
  const reason = typeof code === 'string' && /^[A-Z][A-Z0-9_]+$/.test(code) ? code : 'unknown reason'
  return new SourceError('failed', `The PDF could not be fetched (${reason}).`, retry)
}
