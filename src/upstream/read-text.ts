/** What an upstream answered, bounded: any bytes at all must end in an answer or an error. */
import type { IncomingMessage } from 'node:http'
import { SourceError } from '../sources.ts'

/** `name` is the upstream's, as in a sentence. */
export async function readText(response: IncomingMessage, name: string, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response) {
    length += chunk.length
    // Leaving the loop destroys the response, and its connection.
    if (length > maxBytes) throw new SourceError('failed', `${name} answered too much`)
    chunks.push(chunk)
  }
  if (!response.complete) throw new SourceError('failed', `${name} broke off its answer`)
  return Buffer.concat(chunks).toString()
}

/** Undefined when it is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
