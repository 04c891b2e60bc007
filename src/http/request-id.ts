import { randomUUID } from 'node:crypto'

/**
 * The id is unique among all processes. All ids have the same length, so that two answers to the same request differ
 * in nothing else.
 */
export function createRequestId(): string {
  return `req_${randomUUID()}`
}
