/** One request after the other, on one connection that stays open. */
import { Agent, request } from 'node:http'
import type { LoadRequest } from './load.ts'

export interface Answer {
  status: number
  etag: string
  text: string
  /** In milliseconds, from the request to the end of its answer. */
  took: number
}

export type Ask = (asked: LoadRequest) => Promise<Answer>

export function openConnection(address: string): { ask: Ask; close(): void } {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return {
    ask: ({ path, headers }) =>
      new Promise((resolve, reject) => {
        const began = performance.now()
        const outgoing = request(address + path, { agent, headers, timeout: 30_000 }, response => {
          const chunks: Buffer[] = []
          response.on('data', chunk => chunks.push(chunk))
          response.once('error', reject)
          response.once('end', () =>
            resolve({
              took: performance.now() - began,
              status: response.statusCode ?? 0,
              etag: response.headers.etag ?? '',
              text: Buffer.concat(chunks).toString(),
            }),
          )
        })
        outgoing.once('timeout', () => outgoing.destroy(new Error(`No answer within 30 s: ${path}`)))
        outgoing.once('error', reject)
        outgoing.end()
      }),
    close: () => agent.destroy(),
  }
}
