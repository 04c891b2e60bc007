import { readFileSync } from 'node:fs'
import { locateFile } from '../../package.ts'

/**
 * The OpenAPI document's text as it was committed: deriving it at every start would be work for nothing. As bytes, so
 * that all the answers that wait to be read share them.
 */
export function readApiDescription(): Buffer {
  return readFileSync(locateFile('openapi.json'))
}
