import { randomBytes, randomFillSync } from 'node:crypto'

const processPart = randomBytes(6).toString('hex')

/** 80 random bits: of a thousand million ids, two are the same with a chance of one in two million. */
const randomPartBytes = 10

/** Drawn for many ids at once: a draw costs about the same however many bytes it brings. */
const pool = Buffer.allocUnsafeSlow(randomPartBytes * 512)
let next = pool.length

/**
 * Unique among all processes, and always of one length, so that two answers differ in it alone. It does not
 * reveal the number of requests.
 */
export function createRequestId(): string {
  if (next === pool.length) {
    randomFillSync(pool)
    next = 0
  }
  const start = next
  next += randomPartBytes
  return `req_${processPart}${pool.toString('hex', start, next)}`
}
