import { readFileSync } from 'node:fs'

/** The OpenAPI document's text as it was committed: deriving it at every start would be work for nothing. */
export function readApiDescription(): string {
  return readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')
}
