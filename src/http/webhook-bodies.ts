/**
 * Reads the bodies of webhooks before their signature is verified. Anybody may send bytes, so the memory of all bodies
 * together is bounded.
 */
import type { IncomingMessage } from 'node:http'

/** Far more than any event holds. */
export const maxBodyBytes = 1024 * 1024

/** Maximum of all bodies that are being read. Beyond it, the largest body is given up. */
const maxBytesInAll = 16 * 1024 * 1024

/** Size of the first buffer for a body of unknown length. */
const firstBytes = 16 * 1024

/**
 * `too_large`: the body is larger than allowed. `given_up`: all bodies together are too large. `gone`: the sender
 * disconnected.
 */
export type BodyFailure = 'too_large' | 'given_up' | 'gone'

/** A body while it arrives. */
class ArrivingBody {
  /** Chunks are copied into this buffer, because a Buffer of one byte takes about a hundred bytes. */
  private buffer: Buffer
  private length = 0
  readonly settle: (outcome: Buffer | BodyFailure) => void

  constructor(declaredBytes: number, settle: (outcome: Buffer | BodyFailure) => void) {
    this.buffer = Buffer.allocUnsafeSlow(Math.min(declaredBytes, maxBodyBytes))
    this.settle = settle
  }

  /** Size of the buffer, which may be larger than the bytes that have arrived. */
  get reserved(): number {
    return this.buffer.length
  }

  get bytes(): Buffer {
    return this.buffer.subarray(0, this.length)
  }

  hasRoomFor(chunk: Buffer): boolean {
    return this.length + chunk.length <= this.buffer.length
  }

  isTooLargeWith(chunk: Buffer): boolean {
    return this.length + chunk.length > maxBodyBytes
  }

  growFor(chunk: Buffer): void {
    const wanted = Math.max(this.length + chunk.length, this.buffer.length * 2)
    const larger = Buffer.allocUnsafeSlow(Math.min(maxBodyBytes, wanted))
    this.bytes.copy(larger)
    this.buffer = larger
  }

  append(chunk: Buffer): void {
    chunk.copy(this.buffer, this.length)
    this.length += chunk.length
  }
}

export class WebhookBodies {
  private readonly arriving = new Set<ArrivingBody>()

  /** Resolves with the raw bytes, which the signature covers, or with the failure. */
  read(request: IncomingMessage): Promise<Buffer | BodyFailure> {
    return new Promise(resolve => {
      const declared = Number(request.headers['content-length'] ?? firstBytes)
      const body = new ArrivingBody(declared, outcome => {
        this.arriving.delete(body)
        request.off('data', take)
        resolve(outcome)
      })
      const take = (chunk: Buffer) => {
        if (body.isTooLargeWith(chunk)) return body.settle('too_large')
        const hasRoom = body.hasRoomFor(chunk)
        if (!hasRoom) body.growFor(chunk)
        body.append(chunk)
        if (!hasRoom) this.keepWithinBound()
      }
      this.arriving.add(body)
      request.on('data', take)
      request.on('end', () => body.settle(body.bytes))
      request.on('error', () => body.settle('gone'))
      request.on('close', () => body.settle('gone'))
      this.keepWithinBound()
    })
  }

  /** Gives up the largest body, because events are small and arrive at once. A large, slow body is no event. */
  private keepWithinBound(): void {
    const all = [...this.arriving]
    const bytesInAll = all.reduce((sum, { reserved }) => sum + reserved, 0)
    if (bytesInAll > maxBytesInAll) all.reduce((a, b) => (b.reserved > a.reserved ? b : a)).settle('given_up')
  }
}
