/** RFC 9728: tells a client which identity provider gives it a token for this API. */
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'
import { resourceMetadataSchema } from './openapi/schemas.ts'
import { sendJson } from './send-json.ts'
import type { TypedApp } from './typed-app.ts'

export interface Identity {
  /** What of an identity provider clients are told; null: none is configured. */
  provider: { issuer: string; scope: string | null } | null
  /** The address under which clients reach the API; null: what they asked is taken for it. */
  publicUrl: string | null
}

const metadataPath = '/.well-known/oauth-protected-resource'

export function addResourceMetadata(app: TypedApp, { provider, publicUrl }: Identity): void {
  app.get(metadataPath, { schema: resourceMetadataSchema }, async (request, reply) => {
    if (provider === null)
      throw new ApiError(
        'route_not_found',
        'No identity provider is configured: tokens are made by the operator.',
      )
    const { issuer, scope } = provider
    const metadata = {
      resource: publicUrl ?? askedOrigin(request),
      authorization_servers: URL.canParse(issuer) ? [issuer] : undefined,
      scopes_supported: scope === null ? undefined : [scope],
      bearer_methods_supported: ['header'],
      resource_name: 'Fatura',
    }
    return sendJson(reply.header('cache-control', 'no-store'), JSON.stringify(metadata))
  })
}

/** Where the metadata is: its path stands between the host and the path of the resource (RFC 9728, section 3.1). */
export function locateMetadata({ publicUrl }: Identity, request: FastifyRequest): string {
  const { origin, pathname } = new URL(publicUrl ?? askedOrigin(request))
  return `${origin}${metadataPath}${pathname === '/' ? '' : pathname}`
}

/** Told to nobody but who asked: such answers are not cached. */
function askedOrigin({ headers: { host = '' } }: FastifyRequest): string {
  const asked = `http://${host}`
  return /^[\w.:[\]-]+$/.test(host) && URL.canParse(asked) ? asked : 'http://localhost'
}
