/**
 * Downloads every PDF of an upstream. The URL is not trusted, because it comes from an upstream's answer and may point into a private
 * network.
 */
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
  /** A file with any content. Whoever reads the file checks its content. */
  '*/*': Buffer.alloc(0),
}
type FileType = keyof typeof signatures

export interface PdfGuard {
  /** Origins from which a PDF may come: scheme, host and port. A host that begins with "*." stands for its subdomains. */
  origins: readonly string[]
  /** Allows connections to private and loopback addresses. Only for a sandbox. */
  allowPrivate: boolean
  maximumBytes?: number
  /** Timeout from the first request to the last byte, in milliseconds. Default: 30,000. */
  deadlineMs?: number
  /** Timeout of a connection that sends nothing, in milliseconds. A large file's `deadlineMs` may be an hour. Default: 30,000. */
  idleMs?: number
  type?: FileType
}

const maximumRedirects = 3

/** Default `Retry-After`, in seconds, after a failure that may pass. */
const retry = { retryAfter: 5 }
const maxRetryAfterSeconds = 60

const headers = { 'accept-encoding': 'identity', 'user-agent': 'fatura' }

/**
 * Resolves once the first bytes prove that the file is a PDF. Rejects with a `SourceError`: `missing`, `timeout` or `failed`. A later
 * failure destroys the body with a `SourceError`, so a body that ends is complete. No error contains the URL, because it may open the
 * PDF to anybody. No error has a cause, because Node's errors name the host.
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

/** Returns the first answer that is no redirect. Each address is checked before a request is sent to it. */
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

/**
 * Reads the socket into one buffer. By default, every 64 KB of a PDF leave two buffers to the garbage collector. The buffer can be
 * reused, because Node's HTTP parser copies the bytes.
 */
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
  // Host names are checked when they are resolved. Node does not resolve a literal IP address, so it is checked here.
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (!allowPrivate && isIP(host) !== 0 && !isPublicAddress(host)) throw refuseAddress()
}

/**
 * Returns the declared size, or null for a chunked answer. Throws when the headers show that no complete PDF of the allowed size can
 * follow.
 */
function readSize({ statusCode, headers }: IncomingMessage, maximumBytes: number): number | null {
  if (statusCode === 404 || statusCode === 410)
    throw new SourceError('missing', 'The server no longer has the PDF.')
  if (statusCode !== 200) throw refuseStatus(statusCode, headers['retry-after'])
  if (!/^(identity)?$/i.test(headers['content-encoding'] ?? ''))
    throw new SourceError('failed', 'The PDF was sent in an encoding that was not requested.')
  const length = headers['content-length']
  // Without Content-Length and Transfer-Encoding, the body ends with the connection. A PDF that was cut off would then look complete.
  if (length === undefined && headers['transfer-encoding'] === undefined)
    throw new SourceError('failed', 'The PDF was sent without a length or chunks, so it may be incomplete.')
  if (length === undefined) return null
  if (Number(length) > maximumBytes) throw tooLarge()
  return Number(length)
}

/** Only a failure with status 429 or 5xx may pass, so the error for any other status gets no `Retry-After`. */
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
    // This listener stays on the body. Without a listener, an error that comes before the reader listens would end the process.
    body.on('error', reject)
    body.once('close', () => {
      signal.removeEventListener('abort', stop)
      response.destroy()
    })
    if (signal.aborted) stop()
    else response.pipe(body)
  })
}

/**
 * Passes a file through. Fails when the content is of another type or too large. Calls `proven` once, when the first bytes match the
 * type.
 */
function createPdfCheck(maximumBytes: number, type: FileType, proven: () => void): Transform {
  const signature = signatures[type]
  let firstBytes: Buffer | null = Buffer.alloc(0)
  let received = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      received += chunk.length
      if (received > maximumBytes) return done(tooLarge())
      if (type === 'application/pdf' && pdfPassed.hasSubscribers) pdfPassed.publish({ bytes: chunk.length })
      if (firstBytes === null) return done(null, chunk)
      firstBytes = Buffer.concat([firstBytes, chunk])
      if (!firstBytes.subarray(0, signature.length).equals(signature.subarray(0, firstBytes.length)))
        return done(noPdf())
      if (firstBytes.length < signature.length) return done()
      const start = firstBytes
      firstBytes = null
      done(null, start)
      proven()
    },
    flush: done => done(firstBytes === null ? null : noPdf()),
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

/** Converts an error of Node or of the network to a `SourceError` that holds only the error's code. */
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
