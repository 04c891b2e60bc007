/** Authentication and authorization of all customer routes, before anything else of them runs. */
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
    /** Null on routes without authentication, and until it succeeded. */
    grant: Grant | null
  }
}

export interface AuthOptions {
  authenticate: Authenticate
  /** Null: there is no rate limit. */
  spendRequest: SpendRequest | null
  /** Absent: there is no identity provider. */
  identity?: Identity
}

/**
 * Guards every route of `scope`: a good token, within its rate, valid for the customer and the invoice in the path; for all
 * customers where the path names none, unless the handler asks the grant.
 */
export function guardCustomerRoutes(scope: FastifyInstance, options: AuthOptions, checksPath = true): void {
  const { authenticate, spendRequest, identity } = options

  /** A promise only when the store has to be asked. */
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

  // With a callback, because a promise is waited for even when there is nothing to wait for.
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
  // An id of the wrong form belongs to nobody; the route's schema refuses it with a better reason.
  if (isCustomerId(customerId)) checkCustomer(mayRead)
  if (grant.invoice_id === null || grant.invoice_id === invoiceId) return
  // The store is not asked: whether another invoice exists makes no difference.
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

/** RFC 6750, section 3: missing credentials get a bare challenge, bad ones the reason. */
function challenge(reply: FastifyReply, { code, message }: ApiError, identity: Identity | undefined): void {
  if (!challenged.includes(code)) return
  const parts = ['realm="fatura"']
  if (code !== 'missing_token') parts.push(`error="${code}"`, `error_description="${message}"`)
  if (identity?.provider) {
    const { scope } = identity.provider
    if (scope !== null) parts.push(`scope="${scope}"`)
    // RFC 9728, section 5.1.
    if (identity.publicUrl !== null) parts.push(`resource_metadata="${locateMetadata(identity.publicUrl)}"`)
  }
  reply.header('www-authenticate', `Bearer ${parts.join(', ')}`)
}
