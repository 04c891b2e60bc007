/** Authenticates and authorizes every request of the customer routes before anything else runs. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../domain/errors.ts'
import { isCustomerId, isInvoiceId } from '../domain/invoice.ts'
import type { Authenticate } from './access/authenticate.ts'
import type { Grant } from './access/grant.ts'
import { clientAddress } from './client-address.ts'
import { hasParameter } from './parameters.ts'
import { isCounted, type SpendRequest } from './rate-limit.ts'
import { type Identity, locateMetadata } from './resource-metadata.ts'
import { isRepeated } from './server/find-fault.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Null on routes without authentication, and until authentication succeeded. */
    grant: Grant | null
  }
}

export interface AuthOptions {
  authenticate: Authenticate
  /** Null when there is no rate limit. */
  spendRequest: SpendRequest | null
  /** Absent when there is no identity provider. */
  identity?: Identity
}

/**
 * Guards every route of `scope`. A request needs a valid token within its rate limit. The token must cover the
 * customer and the invoice in the path, or all customers if the path names none. With `checksPath` false, the handler
 * checks the grant itself.
 */
export function guardCustomerRoutes(scope: FastifyInstance, options: AuthOptions, checksPath = true): void {
  const { authenticate, spendRequest, identity } = options

  /** Returns a promise only when the store must be asked. */
  function admit(request: FastifyRequest, reply: FastifyReply, grant: Grant): undefined | Promise<void> {
    request.grant = grant
    if (!isCounted(request)) spendRequest?.(grant, reply)
    if (!checksPath) return
    const { customerId, invoiceId = null } = request.params as { customerId?: string; invoiceId?: string }
    if (customerId === undefined) return checkAllCustomers(grant)
    const mayRead = grant.mayRead(customerId)
    if (mayRead instanceof Promise) return mayRead.then(may => checkScope(grant, may, customerId, invoiceId))
    checkScope(grant, mayRead, customerId, invoiceId)
  }

  // Uses a callback, because Fastify waits for a promise even when the result is known at once.
  scope.addHook('onRequest', (request, reply, done) => {
    const refuse = (error: Error) => {
      if (error instanceof ApiError) challenge(reply, error, identity)
      done(error)
    }
    try {
      const grant = authenticate(readAuthorization(request), () => clientAddress(request))
      const admitting =
        grant instanceof Promise
          ? grant.then(found => admit(request, reply, found))
          : admit(request, reply, grant)
      if (admitting !== undefined) {
        admitting.then(() => done(), refuse)
        return
      }
    } catch (error) {
      refuse(error as Error)
      return
    }
    done()
  })
}

function checkScope(grant: Grant, mayRead: boolean, customerId: string, invoiceId: string | null): void {
  // An id of the wrong form belongs to nobody. The route's schema refuses it with a better reason.
  if (isCustomerId(customerId)) checkCustomer(mayRead)
  if (grant.invoice_id === null || grant.invoice_id === invoiceId) return
  // The store is not asked, so that the refusal does not reveal whether the other invoice exists.
  if (invoiceId === null || isInvoiceId(invoiceId))
    throw new ApiError('insufficient_scope', 'The access token is valid for one invoice alone.')
}

export function checkCustomer(mayRead: boolean): void {
  if (!mayRead) throw new ApiError('insufficient_scope', 'The access token is not valid for this customer.')
}

export function checkAllCustomers({ every_customer }: Grant): undefined {
  if (!every_customer)
    throw new ApiError('insufficient_scope', 'The access token is not valid for all customers.')
}

function readAuthorization(request: FastifyRequest): string | undefined {
  if (isRepeated('authorization', request.raw.rawHeaders))
    throw new ApiError('invalid_request', 'Send the Authorization header once.')
  if (hasParameter(request.query, 'access_token'))
    throw new ApiError(
      'invalid_request',
      'Send the access token in the Authorization header, never in the URL.',
    )
  return request.headers.authorization
}

const challenged = ['missing_token', 'invalid_token', 'insufficient_scope', 'invalid_request']

/** RFC 6750, section 3: missing credentials get a bare challenge. Bad credentials also get the reason. */
function challenge(reply: FastifyReply, { code, message }: ApiError, identity: Identity | undefined): void {
  if (!challenged.includes(code)) return
  const parts = ['realm="fatura"']
  if (code !== 'missing_token') parts.push(`error="${code}"`, `error_description="${message}"`)
  if (identity?.provider) {
    const { scope } = identity.provider
    if (scope !== null) parts.push(`scope="${scope}"`)
    // RFC 9728, section 5.1, defines `resource_metadata`.
    if (identity.publicUrl !== null) parts.push(`resource_metadata="${locateMetadata(identity.publicUrl)}"`)
  }
  reply.header('www-authenticate', `Bearer ${parts.join(', ')}`)
}
