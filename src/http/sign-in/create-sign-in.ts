/**
 * `POST /sign-in` takes an e-mail address. The answer is the same for every address. A customer's address then gets a
 * link by mail.
 */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../../domain/errors.ts'
import { METHODS } from '../../sources/calls/node-http.ts'
import { clientAddress } from '../client-address.ts'
import type { AddPost } from '../routes.ts'
import { signInPath } from '../routes.ts'
import { sendJson } from '../send-json.ts'
import { LinkSender, type MailOptions } from './send-links.ts'
import { createSignInLimits, perSource } from './sign-in-limits.ts'

const maxBodyBytes = 1_024
const allow = 'POST, OPTIONS'
const otherMethods = METHODS.filter(method => method !== 'POST' && method !== 'CONNECT')
/** Matches exactly one e-mail address, without a display name. */
const emailForm = /^[^\s@"\\<>(),;:[\]\p{Cc}]{1,64}@[^\s@"\\<>(),;:[\]\p{Cc}]{1,189}$/u

export function createSignIn(options: MailOptions): AddPost {
  return (app, { store, log }) => {
    const countAttempt = createSignInLimits()
    const sender = new LinkSender(options, store, log)
    app.addHook('onClose', () => sender.close())
    const route = { url: signInPath, schema: { hide: true }, exposeHeadRoute: false }
    app.route({ ...route, method: otherMethods, onRequest: refuseMethod, handler: refuseMethod })
    app.register(async scope =>
      readBodies(scope, route, async (request, reply) => {
        const email = readEmail(await readBody(request.body as IncomingMessage))
        const counted = countAttempt(email, clientAddress(request), performance.now())
        if ('refusedSeconds' in counted)
          throw new ApiError(
            'rate_limited',
            `This address asked for more than ${perSource} links within an hour.`,
            {
              retryAfter: counted.refusedSeconds,
            },
          )
        if (counted.send) reply.raw.once('close', () => sender.queue(email))
        return sendJson(reply.code(202).header('cache-control', 'no-store'), '{"status":"accepted"}')
      }),
    )
  }
}

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

function readBodies(scope: FastifyInstance, route: { url: string; schema: object }, handler: Handler): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', (_request, body, done) => done(null, body))
  scope.route({ ...route, method: 'POST', handler })
}

async function refuseMethod(_request: unknown, reply: FastifyReply): Promise<FastifyReply> {
  if ((_request as FastifyRequest).method === 'OPTIONS') return reply.code(204).header('allow', allow).send()
  reply.header('allow', allow)
  throw new ApiError('method_not_allowed', `Allowed methods: ${allow}.`)
}

/** Requires application/json. A form of another site cannot send this type without a CORS preflight. */
async function readBody(body: IncomingMessage | undefined): Promise<string> {
  if (!/^application\/json\b/i.test(body?.headers['content-type'] ?? ''))
    throw new ApiError('invalid_request', 'Content-Type must be application/json.')
  const parts: Buffer[] = []
  let length = 0
  for await (const part of body ?? []) {
    parts.push(part)
    length += part.length
    if (length > maxBodyBytes)
      throw new ApiError('payload_too_large', `The body is larger than ${maxBodyBytes} bytes.`)
  }
  return Buffer.concat(parts).toString()
}

/** Returns the address in lower case, because hardly any mail server distinguishes case. */
function readEmail(body: string): string {
  let given: unknown
  try {
    given = (JSON.parse(body) as { email?: unknown } | null)?.email
  } catch {}
  const email = typeof given === 'string' ? given.trim() : ''
  if (!emailForm.test(email))
    throw new ApiError('invalid_parameter', 'email must be an e-mail address.', { param: 'email' })
  return email.toLowerCase()
}
