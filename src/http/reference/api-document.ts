/** The parts of the OpenAPI document that the reference shows. */
export interface ApiDocument {
  info: { title: string; version: string; summary: string; description: string }
  tags: readonly { name: string; description: string }[]
  paths: Record<string, { get: Operation }>
  components: {
    schemas: Record<string, Schema>
    securitySchemes: { bearer: { description: string } }
  }
}

interface Operation {
  summary: string
  description: string
  tags: readonly string[]
  security: readonly object[]
  parameters?: readonly Parameter[]
  responses: Record<string, Answer>
}

interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  description: string
  schema: Schema
}

interface Answer {
  content?: Record<string, { examples?: Record<string, { summary: string }> }>
}

interface Schema {
  $ref?: string
  enum?: readonly string[]
}

export function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1)
}

export function listErrors(operations: readonly Operation[]) {
  const errors = new Map<string, { code: string; status: string; meaning: string }>()
  for (const { responses } of operations)
    for (const [status, { content }] of Object.entries(responses))
      for (const [code, { summary }] of Object.entries(content?.['application/json']?.examples ?? {}))
        errors.set(code, { code, status, meaning: summary })
  return [...errors.values()].sort((a, b) => Number(a.status) - Number(b.status))
}

/** Lists the operations in the order of their tags. Each operation has the parameters of its path first. */
export function listOperations({ tags, paths }: ApiDocument) {
  const isOutsidePath = (parameter: Parameter) => Number(parameter.in !== 'path')
  const found = Object.entries(paths).map(([path, { get }]) => {
    const { parameters = [] } = get
    return { path, ...get, parameters: parameters.toSorted((a, b) => isOutsidePath(a) - isOutsidePath(b)) }
  })
  return tags.flatMap(({ name }) => found.filter(operation => operation.tags.includes(name)))
}

export function endSentence(text: string): string {
  return /[.?!]$/.test(text) ? text : `${text}.`
}

export type ListedOperation = ReturnType<typeof listOperations>[number]
