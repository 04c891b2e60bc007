/**
 * The duties of a service that answers customers, as an expert writes them in a day: a token that is looked up by its hash, a
 * rate limit, a request id, security headers, an ETag and a line of log. The plain service and the peer have the same.
 */
import { createHash, randomUUID } from 'node:crypto'
import Fastify, { type FastifyInstance } from 'fastify'

type HasToken = (hash: string) => Promise<boolean> | boolean

const windowMs = 3_600_000
const requestsAWindow = 999_999_999
const windows = new Map<string, { count: number; endsAt: number }>()

/** What is left of the token's budget. */
function takeTurn(hash: string): number {
  const now = Date.now()
  let window = windows.get(hash)
  if (window === undefined || window.endsAt <= now) {
    window = { count: 0, endsAt: now + windowMs }
    windows.set(hash, window)
  }
  return requestsAWindow - ++window.count
}

export function createAppWithDuties(hasToken: HasToken): FastifyInstance {
  const app = Fastify({
    logger: { level: 'info' },
    disableRequestLogging: true,
    keepAliveTimeout: 72_000,
    genReqId: () => randomUUID(),
  })
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({
      'request-id': request.id,
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'referrer-policy': 'no-referrer',
    })
    const [, token = ''] = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '') ?? []
    const hash = createHash('sha256').update(token).digest('hex')
    if (!(await hasToken(hash))) return reply.code(401).send({ error: { code: 'invalid_token' } })
    const left = takeTurn(hash)
    reply.header('ratelimit', `"default";r=${left}`)
    if (left < 0) return reply.code(429).send({ error: { code: 'rate_limited' } })
  })
  app.addHook('onSend', (request, reply, body, done) => {
    const etag = `"${createHash('sha1').update(String(body)).digest('base64url')}"`
    reply.header('etag', etag)
    if (request.headers['if-none-match'] !== etag) return done(null, body)
    reply.code(304)
    done(null, '')
  })
  app.addHook('onResponse', async (request, reply) => {
    const { id, method, routeOptions } = request
    request.log.info(
      { id, method, route: routeOptions.url, status: reply.statusCode, ms: reply.elapsedTime },
      'request',
    )
  })
  return app
}
