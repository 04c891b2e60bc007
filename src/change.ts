/** An entry of the feed of changes. Imports nothing. */

/** `document`: only the part of the invoice that follows from its external document changed. */
export const changeKinds = ['created', 'updated', 'deleted', 'document'] as const
export type ChangeKind = (typeof changeKinds)[number]

export interface Change {
  /** The cursor behind this change, in the feed that it was read from. */
  seq: number
  customer_id: string
  invoice_id: string
  kind: ChangeKind
  /** The customer's version with this change. */
  version: number
  /** Time at which it was stored, UTC with milliseconds. */
  at: string
}

export interface ChangeList {
  changes: Change[]
  /** Value of `after` for the next request. */
  next: number
}
