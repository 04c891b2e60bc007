import { randomUUID } from 'node:crypto'

/** Unique among all processes, and always of one length, so that two answers differ in it alone. */
export function createRequestId(): string {
  return `req_${randomUUID()}`
}
