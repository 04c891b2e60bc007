/** The whole service on a real port over a real store: what a test talks to. */
import assert from 'node:assert/strict'
import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { after, before, type TestContext } from 'node:test'
import { pino } from 'pino'
import type { InvoiceRecord } from '../../../src/domain/invoice.ts'
import { defaultRules } from '../../../src/domain/link/link.ts'
import type { Downloads } from '../../../src/domain/page-settings.ts'
import { createAuthenticate } from '../../../src/http/access/authenticate.ts'
import { openVerifiers } from '../../../src/http/access/open-verifiers.ts'
import { createToken } from '../../../src/http/access/token.ts'
import type { ProviderOptions } from '../../../src/http/access/verify-provider.ts'
import { createApp } from '../../../src/http/app.ts'
import type { RateLimit } from '../../../src/http/rate-limit.ts'
import { createSignIn } from '../../../src/http/sign-in/create-sign-in.ts'
import type { MailOptions } from '../../../src/http/sign-in/send-links.ts'
import { loadWebFiles, type PageBrand, readApiDescription } from '../../../src/http/web-files.ts'
import type { InvoicingSystem, PaymentPlatform } from '../../../src/sources/source.ts'
import { openReadStore, openWriteStore } from '../../../src/store/engines.ts'
import type { WriteStore } from '../../../src/store/store.ts'
import type { Engine } from '../databases/engines.ts'

export interface ServiceOptions {
  records?: readonly InvoiceRecord[]
  /** Without `findPaymentPage`, no invoice can be paid. */
  payments?: Omit<PaymentPlatform, 'findPaymentPage'> & Partial<PaymentPlatform>
  documents?: InvoicingSystem
  rateLimit?: RateLimit
  readyMaxLagMs?: number
  /** Whether pages are served beside the API; not unless told. */
  web?: boolean
  embedOrigins?: readonly string[]
  /** PDFs that the page offers; all unless told. */
  downloads?: Downloads
  pay?: boolean
  brand?: PageBrand
  corsOrigins?: readonly string[]
  trustedProxies?: readonly string[]
  /** An identity provider whose JWTs are let in. */
  provider?: ProviderOptions
  /** Sign-in by e-mail. */
  mail?: Omit<MailOptions, 'operatorUrl'>
  /** Where customer links are for. */
  publicUrl?: string
  /** Requests that wait for changes at once. */
  maxWaiting?: number
  /** Whether MCP is served; not unless told. */
  mcp?: boolean
}

export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  text: string
  /** The body as JSON; undefined when there is none. */
  // biome-ignore lint/suspicious/noExplicitAny: a test states what it expects of it
  json: any
}

export interface RequestOptions {
  method?: string
  /** Null sends no Authorization header. By default a token for every customer is sent. */
  token?: string | null
  headers?: Record<string, string | string[]>
  body?: string
}

export interface TokenOptions {
  /** Null, the default, means every customer. */
  customers?: readonly string[] | null
  expires_at?: number | null
  revoked_at?: number | null
}

export interface Service {
  /** As in http://127.0.0.1:12345. */
  address: string
  port: number
  /** The store's address, for a second process or handle. */
  url: string
  store: WriteStore
  /** Every log line so far, as text. */
  logs: string[]
  /** The ids of tokens and keys that the store was asked for. */
  lookups: string[]
  save(...records: InvoiceRecord[]): Promise<void>
  createToken(options?: TokenOptions): Promise<string>
  get(path: string, options?: RequestOptions): Promise<Answer>
  /** Lists a customer's invoices; the path is what follows /invoices. */
  list(query?: string, options?: RequestOptions & { customer?: string }): Promise<Answer>
  /** Sends bytes as they are, and resolves with all that came back once the server closed the connection. */
  send(bytes: string | Buffer, then?: 'wait' | 'hang up'): Promise<string>
}

export async function startService(
  t: TestContext,
  engine: Engine,
  options: ServiceOptions = {},
): Promise<Service> {
  const url = await engine.createStore(t)
  const writer = await openWriteStore(url)
  const reader = await openReadStore(url)
  const logs: string[] = []
  const lookups: string[] = []
  const identity = { provider: options.provider ?? null, publicUrl: options.publicUrl ?? null }
  const coversCustomer = (id: string, customerId: string) => reader.coversCustomer(id, customerId)
  const verifiers = openVerifiers({
    ...identity,
    coversCustomer,
    findKey(kid) {
      lookups.push(kid)
      return reader.findKey(kid)
    },
    onProblem: err => log.warn({ err }, 'the keys of the identity provider could not be read'),
  })
  const isOpenForJwts = identity.provider !== null || identity.publicUrl !== null
  const log = pino({ level: 'debug', base: null }, { write: line => void logs.push(line) })
  const app = createApp({
    store: reader,
    payments: options.payments ? { findPaymentPage: async () => null, ...options.payments } : null,
    documents: options.documents ?? null,
    authenticate: createAuthenticate({
      coversCustomer,
      findToken(id) {
        lookups.push(id)
        return reader.findToken(id)
      },
      verifyJwt: isOpenForJwts ? verifiers.verifyJwt : null,
    }),
    identity,
    rateLimit: options.rateLimit ?? null,
    readyMaxLagMs: options.readyMaxLagMs ?? null,
    corsOrigins: options.corsOrigins,
    trustedProxies: options.trustedProxies ?? null,
    log,
    apiDescription: readApiDescription(),
    pay: options.pay,
    maxWaiting: options.maxWaiting,
    mcp: options.mcp
      ? (await import('../../../src/http/mcp/create-mcp.ts')).createMcp({
          operatorUrl: url,
          rules: defaultRules,
        })
      : undefined,
    signIn: options.mail && createSignIn({ ...options.mail, operatorUrl: url }),
    files: options.web
      ? loadWebFiles(readApiDescription(), { ...options, signIn: options.mail !== undefined })
      : [],
  })
  const address = await app.listen({ host: '127.0.0.1', port: 0 })
  const agent = new Agent({ keepAlive: true })
  const tokens: string[] = []
  t.after(async () => {
    agent.destroy()
    app.server.closeAllConnections()
    await app.close()
    verifiers.close()
    await reader.close()
    await writer.close()
    assertClean(logs, tokens)
  })

  const service: Service = {
    address,
    port: (app.server.address() as AddressInfo).port,
    url,
    store: writer,
    logs,
    lookups,
    async save(...records) {
      await writer.transaction(tx => tx.saveInvoices(records))
    },
    async createToken({ customers = null, expires_at = null, revoked_at = null } = {}) {
      const { id, token, hash } = createToken()
      await writer.saveToken({
        id,
        name: 'test',
        hash,
        customers,
        created_at: Date.now(),
        expires_at,
        revoked_at,
      })
      tokens.push(token)
      return token
    },
    get(path, { method = 'GET', token = everyCustomer, headers = {}, body } = {}) {
      const credentials = token === null ? {} : { authorization: `Bearer ${token}` }
      return exchange(agent, service.port, path, method, { ...credentials, ...headers }, body)
    },
    list(query = '', { customer = 'cus_ana', ...rest } = {}) {
      return service.get(`/api/v1/client/${customer}/invoices${query}`, rest)
    },
    send: (bytes, then = 'wait') => sendBytes(service.port, bytes, then),
  }
  const everyCustomer = await service.createToken()
  if (options.records !== undefined) await service.save(...options.records)
  return service
}

/** One for all tests of a suite that leave it as it was: it is there with the first test, and gone after the last. */
export function shareService(engine: Engine, options: ServiceOptions = {}): () => Service {
  let service: Service | undefined
  const endings: (() => unknown)[] = []
  const suite: Pick<TestContext, 'after'> = { after: end => void endings.unshift(end as () => unknown) }
  before(async () => {
    service = await startService(suite as TestContext, engine, options)
  })
  after(async () => {
    for (const end of endings) await end()
  })
  return () => service as Service
}

function exchange(
  agent: Agent,
  port: number,
  path: string,
  method: string,
  headers: Record<string, string | string[]>,
  body: string | undefined,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    // The path goes out as it is written: a URL object would resolve .. and \\ before the server sees them.
    const outgoing = httpRequest({ port, path, method, headers, agent, host: '127.0.0.1' }, incoming => {
      const chunks: Buffer[] = []
      incoming.on('data', chunk => chunks.push(chunk))
      incoming.on('error', reject)
      incoming.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        const isJson = incoming.headers['content-type'] === 'application/json' && text !== ''
        resolve({
          status: incoming.statusCode ?? 0,
          headers: incoming.headers,
          text,
          json: isJson ? JSON.parse(text) : undefined,
        })
      })
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

function sendBytes(port: number, bytes: string | Buffer, then: 'wait' | 'hang up'): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect(port, '127.0.0.1', () => {
      if (then === 'wait') socket.write(bytes)
      else socket.end(bytes)
    })
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.on('end', () => resolve(Buffer.concat(chunks).toString()))
    socket.on('error', error => (then === 'wait' ? reject(error) : resolve('')))
  })
}

/** No token, JWT, e-mail address or tax id in any log line, of any test; test/support/worlds/identity.ts has canaries in its claims. */
function assertClean(logs: readonly string[], tokens: readonly string[]): void {
  for (const line of logs) {
    for (const token of tokens) assert.ok(!line.includes(token), `a token in a log line: ${line}`)
    assert.doesNotMatch(
      line,
      // A JWT is longer than the id of a token, which may hold the same three letters by chance.
      /fat_\w{40}|(?-i:eyJ)[\w-]{12}|[\w.]@[\w.]|PT\d{9}|canary/i,
      'something private in a log line',
    )
  }
}

/** Asserts one error of the one shape, and nothing else. */
export function assertError(answer: Answer, status: number, code: string, param?: string): void {
  assert.equal(answer.status, status, answer.text)
  assert.equal(answer.headers['content-type'], 'application/json')
  assert.equal(answer.headers['cache-control'], 'no-store')
  const { error } = answer.json
  assert.deepEqual(Object.keys(answer.json), ['error'])
  assert.deepEqual(
    Object.keys(error),
    param === undefined ? ['code', 'message', 'request_id'] : ['code', 'message', 'param', 'request_id'],
  )
  assert.equal(error.code, code)
  assert.equal(error.param, param)
  assert.ok(error.message.length > 10)
  assert.equal(error.request_id, answer.headers['request-id'])
}
