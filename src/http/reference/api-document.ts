/** The parts of the OpenAPI document that its pages are made of. */
export interface ApiDocument {
  info: { title: string; version: string; summary: string; description: string }
  tags: readonly { name: string; description: string }[]
  paths: Record<string, { get: Operation }>
  components: {
    schemas: Record<string, Schema>
    securitySchemes: { bearer: { description: string } }
  }
}

export interface Operation {
  operationId: string
  summary: string
  description: string
  tags: readonly string[]
  security: readonly object[]
  parameters?: readonly Parameter[]
  responses: Record<string, Answer>
}

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  description: string
  example?: unknown
  schema: Schema
}

export interface Answer {
  description: string
  headers?: Record<string, { description: string }>
  content?: Record<string, Media>
}

interface Media {
  schema: Schema
  examples?: Record<string, { summary: string }>
}

export interface Schema {
  $ref?: string
  type?: string | readonly string[]
  format?: string
  enum?: readonly string[]
  items?: Schema
  description?: string
  properties?: Record<string, Schema>
  examples?: readonly unknown[]
}

/** From a reference to the name it gives. */
export function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1)
}

export interface ErrorDescription {
  code: string
  status: string
  meaning: string
}

/** Every error that an operation may answer, by its code. */
export function listErrors({ responses }: Operation): ErrorDescription[] {
  return Object.entries(responses).flatMap(([status, { content }]) =>
    Object.entries(content?.['application/json']?.examples ?? {}).map(([code, { summary }]) => ({
      code,
      status,
      meaning: summary,
    })),
  )
}

export function listOperations(document: ApiDocument): { path: string; operation: Operation }[] {
  return Object.entries(document.paths).map(([path, { get }]) => ({ path, operation: get }))
}
