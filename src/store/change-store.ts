/** The part of the store's contract that is the feed of changes and the outgoing webhooks that follow it. */
import type { Change } from '../domain/change.ts'

/** A change as it is stored; `at` is in milliseconds. */
export type StoredChange = Omit<Change, 'at' | 'cursor'> & {
  /** Its place in the feed that it was read from. */
  seq: number
  at: number
}

export interface ChangePage {
  changes: StoredChange[]
  /** The place behind the last of them. */
  next: number
  /** The life of the store that these places belong to. */
  life: string
}

export interface ChangeReads {
  /**
   * Changes after a place, of a customer or of all, in the order of their commits. Null when some of them are pruned, and where the
   * place is none of this store: of another life, or beyond the feed's end. A replica may be behind: it is out of reach then.
   * Without a place there are none, and `next` is the feed's end. A place in a customer's feed is its version.
   */
  readChanges(
    customerId: string | null,
    after: number | null,
    limit: number,
    life?: string,
  ): Promise<ChangePage | null>
}

/** How many changes one transaction removes: some tenths of a second. */
export const pruneAtOnce = 10_000

export const webhookStates = ['active', 'paused', 'disabled'] as const

/** An address, and a cursor on the feed of all customers. Moments are in milliseconds. */
export interface OutgoingWebhook {
  id: string
  url: string
  /** Null: every customer. */
  customers: readonly string[] | null
  /** For HMAC signatures, as the receiver has it: `whsec_` and base64. */
  secret: string
  /** For Ed25519 signatures: PKCS #8 in base64. */
  private_key: string
  /** All changes up to this one are delivered. */
  cursor: number
  /** `disabled`: it failed for too long, or answered 410. */
  state: (typeof webhookStates)[number]
  attempts: number
  next_at: number | null
  error: string | null
  created_at: number
}

export type Delivery = Pick<OutgoingWebhook, 'cursor' | 'state' | 'attempts' | 'next_at' | 'error'>

/** Each is a transaction of its own. */
export interface WebhookCommands {
  addWebhook(webhook: OutgoingWebhook): Promise<void>
  /** False when there is no such webhook. */
  changeWebhook(
    id: string,
    change: Pick<OutgoingWebhook, 'state'> & { cursor: number | null },
  ): Promise<boolean>
  removeWebhook(id: string): Promise<boolean>
}
