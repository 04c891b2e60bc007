import { readFileSync } from 'node:fs'
import { locateFile } from '../../package.ts'

/** The committed OpenAPI document. As bytes: all answers that wait to be read share them. */
export function readApiDescription(): Buffer {
  return readFileSync(locateFile('openapi.json'))
}
