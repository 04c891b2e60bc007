/** `fetch` as a page of an origin has it: with a preflight, and without what the answer does not allow the page to read. */

/** What a page may always send, and always read (Fetch standard, CORS-safelisted). */
const safeToSend = new Set(['accept', 'accept-language', 'content-language'])
const safeToRead = [
  'cache-control',
  'content-language',
  'content-length',
  'content-type',
  'expires',
  'last-modified',
]

type PageFetch = (
  url: string,
  options?: { method?: string; headers?: Record<string, string> },
) => Promise<Response>

/** Rejects with a TypeError, as browsers do, when the other origin does not allow it. `cookie` goes to the page's own origin. */
export function fetchFrom(origin: string, cookie = ''): PageFetch {
  return async (path, { method = 'GET', headers = {} } = {}) => {
    const url = new URL(path, origin)
    if (url.origin === origin) return fetch(url, { method, headers: { ...headers, cookie } })
    const unsafe = Object.keys(headers)
      .map(name => name.toLowerCase())
      .filter(name => !safeToSend.has(name))
    if (unsafe.length > 0 || !['GET', 'HEAD', 'POST'].includes(method))
      await askBefore(url, origin, method, unsafe)
    const response = await fetch(url, { method, headers: { ...headers, origin }, redirect: 'error' })
    checkOrigin(response, origin)
    return withReadable(response)
  }
}

async function askBefore(url: URL, origin: string, method: string, names: string[]): Promise<void> {
  const answer = await fetch(url, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': method,
      'access-control-request-headers': names.sort().join(','),
    },
  })
  checkOrigin(answer, origin)
  if (!answer.ok) throw new TypeError(`the preflight was answered ${answer.status}`)
  const allowed = listOf(answer, 'access-control-allow-headers')
  const refused = names.filter(name => !allowed.includes(name))
  if (refused.length > 0) throw new TypeError(`${refused} may not be sent`)
  const methods = [...listOf(answer, 'access-control-allow-methods'), 'get', 'head', 'post']
  if (!methods.includes(method.toLowerCase())) throw new TypeError(`${method} may not be used`)
}

function checkOrigin({ headers }: Response, origin: string): void {
  if (headers.get('access-control-allow-origin') !== origin) throw new TypeError('the origin is not allowed')
}

function withReadable(response: Response): Response {
  const readable = [...safeToRead, ...listOf(response, 'access-control-expose-headers')]
  const headers = [...response.headers].filter(([name]) => readable.includes(name))
  return new Response(response.body, { status: response.status, headers })
}

function listOf({ headers }: Response, name: string): string[] {
  return (headers.get(name) ?? '').split(',').map(item => item.trim().toLowerCase())
}
