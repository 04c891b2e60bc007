/** The API is read-only. Its routes answer GET, HEAD and OPTIONS, and refuse all other methods. */

import type { FastifyInstance, FastifyReply } from 'fastify'
import { ApiError } from '../domain/errors.ts'
import { METHODS } from '../sources/calls/node-http.ts'

export const allowedMethods = 'GET, HEAD, OPTIONS'

export function refuseMethod(): ApiError {
  return new ApiError('method_not_allowed', `This API is read-only; allowed methods: ${allowedMethods}.`)
}

// Node emits CONNECT as an event of its own, never as a request.
const refusedMethods = METHODS.filter(method => !['GET', 'HEAD', 'OPTIONS', 'CONNECT'].includes(method))

/**
 * Must be called before any route is added. Each GET route then also gets an answer to OPTIONS and a refusal of other
 * methods.
 */
export function addOtherMethods(app: FastifyInstance): void {
  for (const method of refusedMethods) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method)

  app.addHook('onRoute', ({ method, url }) => {
    if (method !== 'GET') return
    app.route({
      method: 'OPTIONS',
      url,
      schema: { hide: true },
      handler: (_request, reply) => answerOptions(reply),
    })
    app.route({ method: refusedMethods, url, schema: { hide: true }, onRequest: refuse, handler: refuse })
  })
}

export function answerOptions(reply: FastifyReply): FastifyReply {
  return reply.code(204).header('allow', allowedMethods).send()
}

// This function is also used as an `onRequest` hook, because a hook answers before a body is read.
async function refuse(_request: unknown, reply: FastifyReply): Promise<never> {
  reply.header('allow', allowedMethods)
  throw refuseMethod()
}
