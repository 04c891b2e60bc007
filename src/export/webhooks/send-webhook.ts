/**
 * Sends one request of an outgoing webhook. An operator's URL may resolve to an internal host, so only public
 * addresses are connected to.
 */
import { isIP } from 'node:net'
import { isPublicAddress, NoResponse, requestOnce } from '../../sources/pdf/public-address.ts'
import { SourceError } from '../../sources/source.ts'

const timeoutMs = 15_000

export interface Answer {
  status: number | null
  /** The outcome as a phrase, for example "answered 500". */
  outcome: string
}

/** Returns the fault of a webhook's URL, for example "must not have a fragment". Null when the URL is valid. */
export function findUrlProblem(text: string, allowPrivate: boolean): string | null {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol))
    return 'must be an address such as https://example.com/hooks'
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or a password'
  if (url.hash !== '') return 'must not have a fragment'
  if (allowPrivate) return null
  if (url.protocol === 'http:') return 'must begin with https (http needs OUTGOING_WEBHOOKS_PRIVATE=on)'
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) === 0 || isPublicAddress(host)) return null
  return 'must be a public address (other addresses need OUTGOING_WEBHOOKS_PRIVATE=on)'
}

/** A redirect is not followed. It is an answer like any other. */
export async function sendWebhook(
  url: string,
  headers: Record<string, string>,
  body: string,
  allowPrivate: boolean,
): Promise<Answer> {
  const problem = findUrlProblem(url, allowPrivate)
  if (problem !== null) return { status: null, outcome: `was not asked: its address ${problem}` }
  const own = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
  const request = { method: 'POST', headers: { ...headers, ...own, 'user-agent': 'fatura' } }
  try {
    const options = { ...request, signal: AbortSignal.timeout(timeoutMs) }
    const response = await requestOnce(new URL(url), allowPrivate, options, body)
    response.destroy()
    return { status: response.statusCode ?? null, outcome: `answered ${response.statusCode}` }
  } catch (error) {
    return { status: null, outcome: explain(error as Error) }
  }
}

/** Returns only the error's code, because the text of a network error names hosts. */
function explain(error: Error): string {
  const { code, name, cause } = error as Error & { code?: unknown }
  if (name === 'TimeoutError' || (cause as Error | undefined)?.name === 'TimeoutError')
    return `did not answer within ${timeoutMs / 1000} s`
  if (error instanceof NoResponse) return 'closed the connection without an answer'
  if (error instanceof SourceError) return 'is at an address that is not public'
  return `could not be reached (${typeof code === 'string' && /^\w+$/.test(code) ? code : 'unknown reason'})`
}
