import { randomBytes } from 'node:crypto'

const processPart = randomBytes(6).toString('hex')
let count = 0

/** Unique among all processes, and always of one length, so that two answers differ in it alone. */
export function createRequestId(): string {
  return `req_${processPart}${(count++).toString(36).padStart(8, '0')}`
}
