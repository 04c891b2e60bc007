/** RFC 9728: names the identity provider whose tokens this API accepts. */
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../domain/errors.ts'
import { resourceMetadataSchema } from './openapi/operation-schemas.ts'
import { sendJson } from './send-json.ts'

export interface Identity {
  /** The identity provider as clients see it; null: none is configured. */
  provider: { issuer: string; scope: string | null } | null
  /** The API's public address; null: there is no metadata, since the Host that a client sent proves nothing. */
  publicUrl: string | null
}

const metadataPath = '/.well-known/oauth-protected-resource'

export function addResourceMetadata(app: FastifyInstance, { provider, publicUrl }: Identity): void {
  app.get(metadataPath, { schema: resourceMetadataSchema }, async (_request, reply) => {
    if (provider === null)
      throw notFound('No identity provider is configured: tokens are made by the operator.')
    if (publicUrl === null)
      throw notFound('The service does not know its own address: PUBLIC_URL is not set.')
    const { issuer, scope } = provider
    const metadata = {
      resource: publicUrl,
      authorization_servers: URL.canParse(issuer) ? [issuer] : undefined,
      scopes_supported: scope === null ? undefined : [scope],
      bearer_methods_supported: ['header'],
      resource_name: 'Fatura',
    }
    return sendJson(reply.header('cache-control', 'no-store'), JSON.stringify(metadata))
  })
}

function notFound(message: string): ApiError {
  return new ApiError('route_not_found', message)
}

/** The metadata's address (RFC 9728, section 3.1). A public address has no path. */
export function locateMetadata(publicUrl: string): string {
  return `${publicUrl}${metadataPath}`
}
