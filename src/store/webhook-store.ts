/** The part of the store's contract that is the outgoing webhooks: each is an address and a cursor on the feed of all customers. */

export const webhookStates = ['active', 'paused', 'disabled'] as const

/** Moments are in milliseconds. */
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
