/** Read-only tools for assistants, by the Model Context Protocol. No state is kept between requests. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { Readable } from 'node:stream'
import type * as Library from '@modelcontextprotocol/server'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../../domain/errors.ts'
import { METHODS } from '../../sources/calls/node-http.ts'
import { guardCustomerRoutes } from '../auth.ts'
import { logError } from '../errors.ts'
import { locateFile, version } from '../package.ts'
import { countedHeader, countedValue } from '../rate-limit.ts'
import { type AddPost, mcpPath, type RouteDependencies } from '../routes.ts'
import { writeRefusal, writeResult } from './answer.ts'
import { createExplain, type ExplainOptions } from './explain.ts'
import { describeTool, instructions, type ReadAnswer, readArguments, type Tool, tools } from './tools.ts'

/** The library, built into one file by scripts/build.ts. The package itself is needed only for its types. */
const sdk: typeof Library = await import(locateFile('build/mcp.js').href)

const maxRequestBytes = 65_536
const allow = 'POST, OPTIONS'
const otherMethods = METHODS.filter(method => method !== 'POST' && method !== 'CONNECT')
const serverOptions = { capabilities: { tools: {} }, instructions }
const address = `http://localhost${mcpPath}`

export function createMcp(options: ExplainOptions): AddPost {
  return (app, dependencies) => {
    const route = { url: mcpPath, schema: { hide: true }, exposeHeadRoute: false }
    app.route({ ...route, method: otherMethods, onRequest: refuseMethod, handler: refuseMethod })
    app.register(async scope => {
      refuseForeign(scope, dependencies)
      guardCustomerRoutes(scope, dependencies, false)
      refuseOtherTypes(scope)
      scope.removeAllContentTypeParsers()
      scope.addContentTypeParser('*', (_request, body, done) => done(null, body))
      const mcp = new McpHandler(app, dependencies, options)
      scope.route({ ...route, method: 'POST', handler: (request, reply) => mcp.handle(request, reply) })
    })
  }
}

/**
 * Protects against DNS rebinding. A page of another site cannot reach this server, whatever host name the page uses
 * for it.
 */
function refuseForeign(scope: FastifyInstance, { identity }: RouteDependencies): void {
  const { publicUrl = null } = identity ?? {}
  const hosts = [
    ...sdk.localhostAllowedHostnames(),
    ...(publicUrl === null ? [] : [new URL(publicUrl).hostname]),
  ]
  scope.addHook('onRequest', (request, reply, done) => {
    const web = new Request(address, { headers: headersOf(request) })
    const refusal = sdk.hostHeaderValidationResponse(web, hosts) ?? sdk.originValidationResponse(web, hosts)
    if (refusal === undefined) done()
    else sendResponse(request, reply, refusal).catch(done)
  })
}

/** Runs before Fastify reads Content-Type, because Fastify reports an unreadable type as a failure. */
function refuseOtherTypes(scope: FastifyInstance): void {
  const message = 'Unsupported Media Type: Content-Type must be application/json'
  scope.addHook('onRequest', (request, reply, done) => {
    if (sdk.isJsonContentType(request.headers['content-type'])) done()
    else {
      const refusal = Response.json(
        { jsonrpc: '2.0', id: null, error: { code: -32_000, message } },
        { status: 415 },
      )
      sendResponse(request, reply, refusal).catch(done)
    }
  })
}

interface Exchange {
  request: FastifyRequest
  reply: FastifyReply
  /** Number of messages of the request's batch that were answered. */
  answered: number
  isRefusalLogged: boolean
}

class McpHandler {
  private readonly app: FastifyInstance
  private readonly dependencies: RouteDependencies
  private readonly explain: ReturnType<typeof createExplain>
  private readonly exchanges = new AsyncLocalStorage<Exchange>()
  private readonly handler

  constructor(app: FastifyInstance, dependencies: RouteDependencies, options: ExplainOptions) {
    this.app = app
    this.dependencies = dependencies
    this.explain = createExplain(options)
    this.handler = sdk.createMcpHandler(context => this.createServer(context), {
      maxRequestBodySize: maxRequestBytes,
      // The tools never change, so nothing can be subscribed to.
      maxSubscriptions: 0,
      onerror: error => this.logRefusal(error),
    })
  }

  async handle(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const gone = new AbortController()
    reply.raw.once('close', () => gone.abort())
    // If the path is spelled differently, for example with an escape, the server has already read the body.
    const body = request.body === undefined || request.raw.readableEnded ? null : Readable.toWeb(request.raw)
    const init = { method: 'POST', headers: headersOf(request), body, duplex: 'half', signal: gone.signal }
    const exchange: Exchange = { request, reply, answered: 0, isRefusalLogged: false }
    const authInfo = { token: '', clientId: '', scopes: [], extra: { exchange } }
    const inner = new Request(address, init as RequestInit)
    const response = await this.exchanges.run(exchange, () => this.handler.fetch(inner, { authInfo }))
    return sendResponse(request, reply, response)
  }

  private createServer({ authInfo }: Library.McpRequestContext) {
    const exchange = authInfo?.extra?.exchange as Exchange
    const { request } = exchange
    const offered = tools.filter(tool => mayCall(tool, request))
    const server = new sdk.Server({ name: 'fatura', version }, serverOptions)
    server.setRequestHandler('tools/list', () => {
      this.countMessage(exchange)
      return { tools: offered.map(describeTool) }
    })
    server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
      const tool = tools.find(({ name }) => name === params.name)
      if (tool !== undefined) return this.callTool(tool, params.arguments ?? {}, exchange, mcpReq.signal)
      const message = `This tool does not exist. The tools are ${offered.map(({ name }) => name).join(', ')}.`
      throw new sdk.ProtocolError(sdk.ProtocolErrorCode.InvalidParams, message)
    })
    return server
  }

  private async callTool(tool: Tool, given: object, exchange: Exchange, signal: AbortSignal) {
    const { request } = exchange
    const { store, log, identity, outage } = this.dependencies
    try {
      this.countMessage(exchange)
      if (!mayCall(tool, request))
        throw new ApiError('insufficient_scope', 'This tool needs a token of all customers.')
      // Without PUBLIC_URL, links are paths, because no answer may repeat the `Host` header.
      const publicUrl = identity?.publicUrl ?? ''
      const read = (path: string) => readApi(this.app, request, path, signal)
      const context = { store, explain: this.explain, publicUrl, read }
      return writeResult(await tool.run(readArguments(tool.input, given), context))
    } catch (error) {
      // The client is gone, so nobody waits for an answer.
      if (signal.aborted) throw error
      return writeRefusal(logError(error as Error, request.id, { log, outage }), request.id)
    }
  }

  /** Counts a message against the rate limit. The first message of a batch was already counted with its request. */
  private countMessage(exchange: Exchange): void {
    const { request, reply } = exchange
    if (exchange.answered++ > 0 && request.grant !== null)
      this.dependencies.spendRequest?.(request.grant, reply)
  }

  /** Logs at most once per request, because the library reports some refusals twice. */
  private logRefusal(error: Error): void {
    const { log } = this.dependencies
    const exchange = this.exchanges.getStore()
    if (exchange?.isRefusalLogged) return
    if (exchange !== undefined) exchange.isRefusalLogged = true
    log.warn({ request_id: exchange?.request.id, reason: reasonOf(error) }, 'a request of MCP was refused')
  }
}

const longestReason = 200

/**
 * Returns the reason of a refusal, as far as possible without text from the client. The message is shortened and loses
 * unusual characters. The message of a JSON parser is replaced, because it quotes the body.
 */
function reasonOf(error: Error): string {
  if (error instanceof SyntaxError) return 'the body is not valid JSON'
  return error.message.replace(/[^\x20-\x7e]+/g, ' ').slice(0, longestReason)
}

/** Headers that the inner request takes over: the token, the trace and the client's address. */
const passedOn = ['authorization', 'traceparent', 'x-forwarded-for']

/** Reads the API's own routes, so that every check and limit of theirs also applies to the tools. */
async function readApi(
  app: FastifyInstance,
  { headers, raw }: FastifyRequest,
  url: string,
  signal: AbortSignal,
): Promise<ReadAnswer> {
  const answer = await app.inject({
    ...{ method: 'GET', url, signal, remoteAddress: raw.socket.remoteAddress ?? '' },
    headers: {
      ...Object.fromEntries(passedOn.flatMap(name => (headers[name] ? [[name, headers[name]]] : []))),
      [countedHeader]: countedValue,
    },
  })
  const json = JSON.parse(answer.body, keepDigits)
  const { 'fatura-synced-at': syncedAt, 'retry-after': retryAfter } = answer.headers
  if (answer.statusCode === 200) return { json, synced_at: syncedAt === undefined ? null : String(syncedAt) }
  const { code, message } = json.error
  throw new ApiError(code, message, retryAfter === undefined ? {} : { retryAfter: Number(retryAfter) })
}

function keepDigits(_key: string, value: unknown, { source }: { source?: string } = {}): unknown {
  const isRounded = Number.isInteger(value) && !Number.isSafeInteger(value)
  return isRounded && source !== undefined ? BigInt(source) : value
}

function mayCall({ isForOperators }: Tool, { grant }: FastifyRequest): boolean {
  return isForOperators === undefined || grant?.every_customer === true
}

function headersOf({ headers }: FastifyRequest): Headers {
  return new Headers(Object.entries(headers).map(([name, value]) => [name, String(value)]))
}

async function sendResponse(request: FastifyRequest, reply: FastifyReply, response: Response) {
  reply.code(response.status).header('cache-control', 'no-store')
  // Only the content type is copied, because the library must not decide whether the connection stays open.
  const type = response.headers.get('content-type')
  if (type !== null) reply.header('content-type', type)
  // The rest of the request's body is not read, so the connection cannot serve another request.
  if (!request.raw.complete) reply.header('connection', 'close')
  return reply.send(Buffer.from(await response.arrayBuffer()))
}

// This function is also used as an `onRequest` hook, because a hook answers before a body is read.
async function refuseMethod({ method }: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  reply.header('allow', allow)
  if (method === 'OPTIONS') return reply.code(204).send()
  throw new ApiError('method_not_allowed', `MCP is served without sessions; allowed methods: ${allow}.`)
}
