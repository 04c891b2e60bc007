/** Reads an upstream's answer, bounded: any bytes at all must end in an answer or an error. */
import type { IncomingMessage } from 'node:http'
import { finished } from 'node:stream'
import { SourceError } from '../sources.ts'

/** `name` is the upstream's, as in a sentence. */
export function readText(response: IncomingMessage, name: string, maxBytes: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const fail = (what: string) => new SourceError('failed', `${name} ${what}`)
  const chunks: Buffer[] = []
  let length = 0
  response.on('data', (chunk: Buffer) => {
    length += chunk.length
    // Its connection goes with it.
    if (length > maxBytes) response.destroy(fail('answered too much'))
    else chunks.push(chunk)
  })
  finished(response, error => {
    if (error) reject(error)
    else if (!response.complete) reject(fail('broke off its answer'))
    else resolve(Buffer.concat(chunks, length).toString())
  })
  return promise
}

/** Undefined when it is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
