/** Builds the HTTP application. The application does not listen yet. */
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { ApiError } from '../domain/errors.ts'
import { bodyTooLarge, ignoreBodies, maxUrlBytes, type ReadsBody, refuseLongUrl } from './check-request.ts'
import { createCors, preflightHeaders } from './cors.ts'
import { handleErrors, refuseUnreadable, sendError } from './errors.ts'
import { logRequests } from './log-requests.ts'
import { addOtherMethods, answerOptions } from './methods.ts'
import { refuseExcess } from './overload.ts'
import { compileParameters, parseQuery } from './parameters.ts'
import { createRequestBudget, type RateLimit } from './rate-limit.ts'
import { createRequestId } from './request-id.ts'
import { addRoutes, mcpPath, type RouteDependencies, signInPath } from './routes.ts'
import { securityHeaders } from './server/bare-answer.ts'
import { createGuardedServer, type ServerOptions } from './server/guarded-server.ts'
import { StoreOutage } from './store-outage.ts'

/**
 * Time for which an idle connection stays open. It exceeds the time for which a proxy in front of the service keeps an
 * idle connection.
 */
const keepAliveMs = 72_000

export interface AppOptions extends Omit<RouteDependencies, 'spendRequest' | 'outage'> {
  /** Rate limit of each token. Null when there is none. */
  rateLimit: RateLimit | null
  /** Addresses and networks of the proxies whose X-Forwarded-For is trusted. Null when none is. */
  trustedProxies?: readonly string[] | null
}

export function createApp({
  trustedProxies = null,
  rateLimit,
  ...dependencies
}: AppOptions): FastifyInstance {
  const { log, corsOrigins = [] } = dependencies
  const faults = { log, outage: new StoreOutage(log) }
  const cors = createCors(corsOrigins)
  const refuse: ServerOptions['refuse'] = (error, origin) => refuseUnreadable(error, log, cors, origin)
  const readsBody: ReadsBody = ({ method, url = '' }) => {
    if (method !== 'POST') return false
    const [path] = url.split('?')
    return (
      (dependencies.mcp !== undefined && path === mcpPath) ||
      (dependencies.signIn !== undefined && path === signInPath)
    )
  }
  const app = Fastify({
    logger: false,
    trustProxy: trustedProxies === null ? false : [...trustedProxies],
    genReqId: createRequestId,
    serverFactory: handle =>
      createGuardedServer({
        handle: ignoreBodies(handle, readsBody, ({ headers: { origin } }) =>
          refuse(Object.assign(new Error('The body is too large'), { code: bodyTooLarge }), origin),
        ),
        refuse,
        keepAliveMs,
        excess: refuseExcess(log, cors),
      }),
    // The guarded server handles client errors. Fastify's own handler would write into answers that have begun.
    clientErrorHandler: () => {},
    // Fastify would load its own compilers if the service set its compilers later.
    schemaController: {
      compilersFactory: {
        buildValidator: () => compileParameters as never,
        buildSerializer: () => () => JSON.stringify,
      },
    },
    routerOptions: { maxParamLength: maxUrlBytes, querystringParser: parseQuery },
    // During the shutdown, a request on an open connection is still served. The connection then closes.
    return503OnClosing: false,
    frameworkErrors: (error, request, reply) =>
      checkRequest(request, reply, refusal => sendError(refusal ?? error, request, reply, faults)),
  })

  app.decorateRequest('grant', null)
  handleErrors(app, faults)
  app.addHook('onRequest', checkRequest)
  logRequests(app, log)
  app.addHook('onResponse', ({ grant, routeOptions }, { statusCode }, done) => {
    const isRead = routeOptions.url === '/ready' || (grant !== null && routeOptions.url !== mcpPath)
    if (isRead && statusCode < 400) faults.outage.recordSuccess()
    done()
  })
  addOtherMethods(app)
  addRoutes(app, {
    ...dependencies,
    spendRequest: createRequestBudget(rateLimit),
    outage: faults.outage,
  })
  return app

  function checkRequest(
    request: FastifyRequest,
    reply: FastifyReply,
    proceed: (refusal?: ApiError) => void,
  ): void {
    reply.headers({
      ...securityHeaders,
      'request-id': request.id,
      ...cors?.headersFor(request.headers.origin),
    })
    const refusal = refuseLongUrl(request)
    if (refusal !== null) proceed(refusal)
    // Preflights are answered at any path, because a page must be able to read a 404.
    else if (cors?.isPreflight(request.raw)) answerOptions(reply.headers(preflightHeaders))
    else proceed()
  }
}
