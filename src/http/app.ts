/** The HTTP application, built but not listening. */
import Fastify, { type FastifyInstance } from 'fastify'
import { createGuardedServer } from '../server/guarded-server.ts'
import { maxUrlBytes, prepareRequests, refuseRequest } from './check-request.ts'
import { type Cors, createCors } from './cors.ts'
import { handleErrors, refuseUnreadable, sendError } from './errors.ts'
import { logRequests } from './log-requests.ts'
import { addOtherMethods, answerPreflight } from './methods.ts'
import { refuseExcess } from './overload.ts'
import { compileParameters, parseQuery } from './parameters.ts'
import { createRequestId } from './request-id.ts'
import { addRoutes, type RouteDependencies } from './routes.ts'

/** Longer than the proxies in front of it keep theirs. */
const keepAliveMs = 72_000

export function createApp(dependencies: RouteDependencies): FastifyInstance {
  const { log, corsOrigins = [] } = dependencies
  const cors = createCors(corsOrigins)
  const app = Fastify({
    logger: false,
    genReqId: createRequestId,
    serverFactory: handle =>
      createGuardedServer({
        handle: prepareRequests(handle),
        refuse: (error, origin) => refuseUnreadable(error, log, cors, origin),
        keepAliveMs,
        excess: refuseExcess(log, cors),
        linesFor: cors?.linesFor,
      }),
    // The server sees to it; Fastify's own would write into answers that have begun.
    clientErrorHandler: () => {},
    routerOptions: { maxParamLength: maxUrlBytes, querystringParser: parseQuery },
    // A request that arrives on an open connection during the shutdown is served; the connection then closes.
    return503OnClosing: false,
    frameworkErrors: (error, request, reply) => {
      reply.header('request-id', request.id)
      const refusal = refuseRequest(request, reply)
      if (refusal === null && cors?.isPreflight(request.raw)) answerPreflight(reply)
      else sendError(refusal ?? error, request, reply, log)
    },
  })

  app.setValidatorCompiler(compileParameters)
  app.setSerializerCompiler(() => JSON.stringify)
  app.decorateRequest('grant', null)
  handleErrors(app, log)
  checkRequests(app)
  if (cors !== null) answerPreflights(app, cors)
  logRequests(app, log)
  addOtherMethods(app)
  addRoutes(app, dependencies)
  return app
}

function checkRequests(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('request-id', request.id)
    const refusal = refuseRequest(request, reply)
    if (refusal === null) done()
    else done(refusal)
  })
}

/** At any path: a page must be able to read that nothing is served there. */
function answerPreflights(app: FastifyInstance, cors: Cors): void {
  app.addHook('onRequest', (request, reply, done) => {
    if (cors.isPreflight(request.raw)) answerPreflight(reply)
    else done()
  })
}
