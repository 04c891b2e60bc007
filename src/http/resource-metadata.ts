/** Serves the metadata of RFC 9728, which name the identity provider whose tokens this API accepts. */
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../domain/errors.ts'
import { resourceMetadataSchema } from './openapi/operation-schemas.ts'
import { sendJson } from './send-json.ts'

export interface Identity {
  /** The identity provider as clients see it. Null when none is configured. */
  provider: { issuer: string; scope: string | null } | null
  /** The API's public URL. Null disables the metadata, because the Host header of a client proves nothing. */
  publicUrl: string | null
}

const metadataPath = '/.well-known/oauth-protected-resource'

export function addResourceMetadata(app: FastifyInstance, { provider, publicUrl }: Identity): void {
  app.get(metadataPath, { schema: resourceMetadataSchema }, async (_request, reply) => {
    if (provider === null)
      throw notFound('No identity provider is configured. The operator of this service makes the tokens.')
    if (publicUrl === null)
      throw notFound('The service does not know its own address, because PUBLIC_URL is not set.')
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

/** URL of the metadata (RFC 9728, section 3.1). The public URL has no path. */
export function locateMetadata(publicUrl: string): string {
  return `${publicUrl}${metadataPath}`
}
