/** Schemas of the routes that need no token, for operators and for exploring the API. */
import type { ErrorCode } from '../../domain/errors.ts'
import { errorResponses, jsonContent, requestIdHeader } from './responses.ts'

function operationSchema(
  operationId: string,
  summary: string,
  description: string,
  answer: { description: string; content: object },
  ...codes: ErrorCode[]
) {
  return {
    tags: ['operations'],
    security: [],
    operationId,
    summary,
    description,
    response: { 200: { ...answer, headers: requestIdHeader }, ...errorResponses(...codes) },
  }
}

const yes = { description: 'Yes.', content: jsonContent('Health') }

export const liveSchema = operationSchema(
  'getLiveness',
  'Check that the process is alive',
  'Answers without a read of the store.',
  yes,
)

export const readySchema = operationSchema(
  'getReadiness',
  'Check that the process can serve requests',
  'Reads the store. Send requests to this process only while this answers 200.',
  yes,
  'unavailable',
  'overloaded',
)

const openapi = { schema: { type: 'object', description: 'An OpenAPI 3.1 document.' } }

export const openapiSchema = operationSchema(
  'getOpenApi',
  'Retrieve the OpenAPI document',
  'The OpenAPI description of this API.',
  { description: 'The document.', content: { 'application/json': openapi } },
  'overloaded',
)

export const resourceMetadataSchema = operationSchema(
  'getResourceMetadata',
  'Retrieve the identity provider',
  'Names the identity provider whose JWTs are accepted, as RFC 9728 describes.',
  { description: 'The metadata.', content: jsonContent('ResourceMetadata') },
  'route_not_found',
  'overloaded',
)
