import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type ChangeList, type Cursor, readCursor, writeCursor } from '../domain/change.ts'
import { ApiError } from '../domain/errors.ts'
import type { ChangePage } from '../store/change-store.ts'
import type { ReadStore } from '../store/store.ts'
import { type AuthOptions, checkAllCustomers, checkCustomer } from './auth.ts'
import { ChangeWaiters, type Waiter } from './changes/wait-for-changes.ts'
import { clientAddress } from './client-address.ts'
import { type ChangesQuery, type CustomerParams, changeLimits } from './openapi/schemas.ts'
import { sendJson } from './send-json.ts'
import { leaving } from './server/guarded-server.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Milliseconds for which the request waited for a change. */
    waitedMs: number
  }
}

/** Time between two checks of a waiting request's token. A revoked token must be refused within a second. */
const recheckMs = 1_000
const maxWaitingPerToken = 100

interface Options extends Pick<AuthOptions, 'authenticate'> {
  store: ReadStore
  /** Maximum of requests that wait for changes, over all tokens. */
  maxWaiting?: number | undefined
}

interface ChangesRoute {
  /** `customerId` is absent in the feed of all customers. */
  Params: Partial<CustomerParams>
  Querystring: ChangesQuery
}

/** The feed of one customer and the feed of all customers share their waiting requests. */
export function createListChanges(app: FastifyInstance, options: Options) {
  const { store } = options
  const waits = new ChangeWaits(options)
  app.decorateRequest('waitedMs', 0)
  app.server.once(leaving, () => waits.release())
  app.addHook('preClose', async () => waits.release())

  return async (request: FastifyRequest<ChangesRoute>, reply: FastifyReply): Promise<FastifyReply> => {
    const { query } = request
    const { customerId = null } = request.params
    const after = checkCursor(query.after)
    const limit = Math.min(Math.max(query.limit ?? changeLimits.default, 1), changeLimits.max)
    const waitMs = Math.min(Math.max(query.wait ?? 0, 0), changeLimits.waitSeconds) * 1000
    const read = async () => {
      const page = await store.readChanges(customerId, after?.seq ?? null, limit, after?.life)
      if (page !== null) return page
      throw new ApiError(
        'cursor_expired',
        'Changes after this cursor are no longer kept, or the store was restored from a backup: request a new one without after, then list the invoices again.',
      )
    }
    if (after === null || waitMs === 0) return send(reply, await read())
    return send(reply, await waits.readOrWait(request, reply, { customerId, waitMs, read }))
  }
}

interface Wait {
  customerId: string | null
  waitMs: number
  read(): Promise<ChangePage>
}

class ChangeWaits {
  private readonly authenticate: Options['authenticate']
  private readonly waiters: ChangeWaiters
  private readonly waitingByToken = new Map<string, number>()

  constructor({ store, authenticate, maxWaiting }: Options) {
    this.authenticate = authenticate
    this.waiters = new ChangeWaiters(store, maxWaiting)
  }

  /** Ends all current and future waits. */
  release(): void {
    this.waiters.release()
  }

  /** Returns the first page that has changes, or the last page read when the wait ends. */
  async readOrWait(request: FastifyRequest, reply: FastifyReply, wait: Wait): Promise<ChangePage> {
    const id = request.grant?.token_id ?? ''
    const others = this.waitingByToken.get(id) ?? 0
    if (others >= maxWaitingPerToken)
      throw new ApiError('rate_limited', `This token waits for changes in ${maxWaitingPerToken} requests.`, {
        retryAfter: changeLimits.waitSeconds,
      })
    this.waitingByToken.set(id, others + 1)
    try {
      return await this.wait(request, reply, wait)
    } finally {
      const remaining = (this.waitingByToken.get(id) ?? 1) - 1
      if (remaining === 0) this.waitingByToken.delete(id)
      else this.waitingByToken.set(id, remaining)
    }
  }

  private async wait(
    request: FastifyRequest,
    reply: FastifyReply,
    { customerId, waitMs, read }: Wait,
  ): Promise<ChangePage> {
    const waiter = await this.join(request, customerId)
    const gone = new AbortController()
    reply.raw.once('close', () => gone.abort())
    const began = performance.now()
    const isOver = () => performance.now() - began >= waitMs || gone.signal.aborted || waiter.isOver()
    try {
      for (;;) {
        const page = await read()
        if (page.changes.length > 0 || isOver()) return page
        for (let isWoken = false; !isWoken && !isOver(); ) {
          const remainingMs = began + waitMs - performance.now()
          isWoken = await waiter.wait(Math.min(remainingMs, recheckMs), gone.signal)
          await this.checkAgain(request, customerId)
        }
      }
    } finally {
      request.waitedMs = performance.now() - began
      waiter.leave()
    }
  }

  private async join(request: FastifyRequest, customerId: string | null): Promise<Waiter> {
    if (this.waiters.isReleased())
      throw new ApiError('unavailable', 'This process is about to end; ask again.', { retryAfter: 1 })
    const waiter = await this.waiters.join(customerId, request.grant?.token_id ?? '')
    if (waiter !== null) return waiter
    throw new ApiError('unavailable', 'Too many requests wait for changes.', {
      retryAfter: changeLimits.waitSeconds,
    })
  }

  /** Checks the token again, because it may expire or be revoked while its request waits. */
  private async checkAgain(request: FastifyRequest, customerId: string | null): Promise<void> {
    const grant = await this.authenticate(request.headers.authorization, () => clientAddress(request))
    if (customerId === null) checkAllCustomers(grant)
    else checkCustomer(await grant.mayRead(customerId))
  }
}

/** The cursor 0 is the beginning of the feed. It has no `life`, because it is valid for every store. */
function checkCursor(after: string | undefined): (Pick<Cursor, 'seq'> & Partial<Cursor>) | null {
  if (after === undefined) return null
  const cursor = after === '0' ? { seq: 0 } : readCursor(after)
  if (cursor !== null) return cursor
  throw new ApiError('invalid_parameter', 'after must be a cursor, as in next, or 0 for the beginning.', {
    param: 'after',
  })
}

function send(reply: FastifyReply, { changes, next, life }: ChangePage): FastifyReply {
  const list: ChangeList = {
    changes: changes.map(({ seq, customer_id, invoice_id, kind, version, at }) => {
      const cursor = writeCursor({ life, seq })
      return { cursor, customer_id, invoice_id, kind, version, at: new Date(at).toISOString() }
    }),
    next: writeCursor({ life, seq: next }),
  }
  return sendJson(reply.header('cache-control', 'no-store'), JSON.stringify(list))
}
