/** The HTTP application, built but not listening. */
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'
import {
  answerOnSocket,
  explainParserError,
  handleErrors,
  maximumUrlLength,
  type ParserError,
  sendError,
} from './errors.ts'
import { logRequests } from './log-requests.ts'
import { addOtherMethods, refuseMethod } from './methods.ts'
import { shedOverload } from './overload.ts'
import { compileParameters, parseQuery } from './parameters.ts'
import { createRequestId } from './request-id.ts'
import { addRoutes, type RouteDependencies } from './routes.ts'

/** A client has so long to send its request; a slower one is answered 408 and let go. */
const requestTimeout = 10_000

/** No request has a body. One that comes all the same is ignored up to here, and refused beyond. */
const maximumIgnoredBody = 8_192

export function createApp(dependencies: RouteDependencies): FastifyInstance {
  const { log } = dependencies
  const app = Fastify({
    logger: false,
    genReqId: createRequestId,
    requestTimeout,
    keepAliveTimeout: 72_000,
    http: { headersTimeout: requestTimeout, connectionsCheckingInterval: 1_000, requireHostHeader: false },
    routerOptions: { maxParamLength: maximumUrlLength, querystringParser: parseQuery },
    // A request that arrives on an open connection during the shutdown is served; the connection then closes.
    return503OnClosing: false,
    frameworkErrors: (error, request, reply) => {
      setCommonHeaders(request, reply)
      sendError(error, request, reply, log)
    },
    clientErrorHandler: (error, socket) => {
      if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy()
      else answerOnSocket(explainParserError(error as unknown as ParserError), socket, log)
    },
  })
  app.server.on('connect', (_request, socket) => answerOnSocket(refuseMethod(), socket, log))
  // An expectation that is not understood may be ignored (RFC 9110, section 10.1.1); Node would answer without a body.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))

  app.setValidatorCompiler(compileParameters)
  app.setSerializerCompiler(() => JSON.stringify)
  app.decorateRequest('grant', null)
  handleErrors(app, log)
  shedOverload(app)
  checkRequests(app)
  logRequests(app, log)
  addOtherMethods(app)
  addRoutes(app, dependencies)
  return app
}

function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('request-id', request.id)
  reply.header('x-content-type-options', 'nosniff')
}

/** What every request must be, whatever its route. */
function checkRequests(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    setCommonHeaders(request, reply)
    const refusal = refuseRequest(request, reply)
    if (refusal === null) done()
    else done(refusal)
  })
}

function refuseRequest(request: FastifyRequest, reply: FastifyReply): ApiError | null {
  const { url = '', headers } = request.raw
  if (url.length > maximumUrlLength)
    return new ApiError('uri_too_long', `The URL is longer than ${maximumUrlLength} bytes.`)
  if (headers.host === undefined && request.raw.httpVersion === '1.1')
    return new ApiError('invalid_request', 'The Host header is missing.')
  const bodyLength = Number(headers['content-length'] ?? 0)
  if (bodyLength > maximumIgnoredBody) {
    reply.header('connection', 'close')
    return new ApiError('payload_too_large', 'Requests of this API carry no body.')
  }
  // Nobody reads the body, so the connection cannot be used again.
  if (bodyLength > 0 || headers['transfer-encoding'] !== undefined) reply.header('connection', 'close')
  return null
}
