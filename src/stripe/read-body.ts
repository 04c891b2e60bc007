/** Reads the bodies of webhooks before their signature is verified: anybody may send one. */
import type { IncomingMessage } from 'node:http'

/** Far more than an event holds. */
export const maxBodyBytes = 1024 * 1024

/** The limit of all bodies that are being read: beyond it, the largest is given up. */
const maxBytesInAll = 16 * 1024 * 1024

/** The first buffer of a body of unknown length. */
const firstBytes = 16 * 1024

/** `too_large`: more than a body may have. `given_up`: too much is being read. `gone`: the sender went away. */
export type BodyFailure = 'too_large' | 'given_up' | 'gone'

interface Body {
  bytes: Buffer
  length: number
  fail(failure: BodyFailure): void
}

/** Reads the raw bytes, which are signed; or returns the failure. */
export function createBodyReader(): (request: IncomingMessage) => Promise<Buffer | BodyFailure> {
  const bodies = new Set<Body>()
  let bytesInAll = 0

  function grow(body: Body, length: number): void {
    const bytes = Buffer.allocUnsafeSlow(Math.min(maxBodyBytes, Math.max(length, body.bytes.length * 2)))
    body.bytes.copy(bytes, 0, 0, body.length)
    bytesInAll += bytes.length - body.bytes.length
    body.bytes = bytes
  }

  // Events are small and arrive at once: a large, slow body is not one.
  function giveUpLargest(): void {
    let largest: Body | undefined
    for (const body of bodies)
      if (largest === undefined || body.bytes.length > largest.bytes.length) largest = body
    largest?.fail('given_up')
  }

  return request =>
    new Promise(resolve => {
      const settle = (outcome: Buffer | BodyFailure) => {
        if (!bodies.delete(body)) return
        bytesInAll -= body.bytes.length
        request.off('data', take)
        resolve(outcome)
      }
      const take = (chunk: Buffer) => {
        const length = body.length + chunk.length
        if (length > maxBodyBytes) return settle('too_large')
        // Copied, because a chunk of one byte takes a hundred.
        if (length > body.bytes.length) grow(body, length)
        chunk.copy(body.bytes, body.length)
        body.length = length
        if (bytesInAll > maxBytesInAll) giveUpLargest()
      }
      const declared = Number(request.headers['content-length'] ?? firstBytes)
      const bytes = Buffer.allocUnsafeSlow(Math.min(declared, maxBodyBytes))
      const body: Body = { bytes, length: 0, fail: settle }
      bodies.add(body)
      bytesInAll += bytes.length
      request.on('data', take)
      request.on('end', () => settle(body.bytes.subarray(0, body.length)))
      request.on('error', () => settle('gone'))
      request.on('close', () => settle('gone'))
    })
}
