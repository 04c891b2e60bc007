/** The part of the store's contract for the feed of changes, and for the outgoing webhooks that follow the feed. */
import type { Change } from '../domain/change.ts'

/** A change as it is stored. `at` is in milliseconds. */
export type StoredChange = Omit<Change, 'at' | 'cursor'> & {
  /** Position of the change in the feed from which it was read. */
  seq: number
  at: number
}

export interface ChangePage {
  changes: StoredChange[]
  /** Position behind the last change of the page. */
  next: number
  /** Life of the store to which the positions belong. A restored store begins a new life. */
  life: string
}

export interface ChangeReads {
  /**
   * Returns changes of one customer or of all customers after a position, in the order of their commits. A position in a customer's feed is
   * the customer's version. Without a position, no changes are returned and `next` is the end of the feed.
   * Returns null when some of the changes are pruned, and when the position belongs to another life or lies beyond the end of the feed. A
   * replica that is behind throws `StoreUnavailable` instead.
   */
  readChanges(
    customerId: string | null,
    after: number | null,
    limit: number,
    life?: string,
  ): Promise<ChangePage | null>
}

/** Number of changes that one transaction removes. This takes some tenths of a second. */
export const pruneAtOnce = 10_000

export const webhookStates = ['active', 'paused', 'disabled'] as const

/** A webhook: its URL, and a cursor in the feed of all customers. Times are in milliseconds. */
export interface OutgoingWebhook {
  id: string
  url: string
  /** Customers whose changes are sent. Null means all customers. */
  customers: readonly string[] | null
  /** Secret of the HMAC signatures in the receiver's format: `whsec_` and base64. */
  secret: string
  /** Private key of the Ed25519 signatures: PKCS #8 in base64. */
  private_key: string
  /** All changes up to this position are delivered. */
  cursor: number
  /** `disabled` means that deliveries failed for too long, or that the receiver answered 410. */
  state: (typeof webhookStates)[number]
  attempts: number
  next_at: number | null
  error: string | null
  created_at: number
}

export type Delivery = Pick<OutgoingWebhook, 'cursor' | 'state' | 'attempts' | 'next_at' | 'error'>

/** Commands that change webhooks. Each call is a transaction of its own. */
export interface WebhookCommands {
  addWebhook(webhook: OutgoingWebhook): Promise<void>
  /** Returns false when there is no such webhook. */
  changeWebhook(
    id: string,
    change: Pick<OutgoingWebhook, 'state'> & { cursor: number | null },
  ): Promise<boolean>
  removeWebhook(id: string): Promise<boolean>
}
