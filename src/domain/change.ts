/** An entry of the feed of changes. Imports nothing. */

/** `document`: only the part of the invoice that follows from its external document changed. */
export const changeKinds = ['created', 'updated', 'deleted', 'document'] as const
export type ChangeKind = (typeof changeKinds)[number]

export interface Change {
  /** The place behind this change, in the feed that it was read from. */
  cursor: string
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
  next: string
}

/** A place in a feed, and the life of the store that gave it: in another, the place means something else. */
export interface Cursor {
  life: string
  seq: number
}

export function writeCursor({ life, seq }: Cursor): string {
  return `${life}-${seq}`
}

/** Null for a text that no store gave. */
export function readCursor(text: string): Cursor | null {
  const [, life, digits] = /^([0-9a-f]{12})-(0|[1-9][0-9]{0,15})$/.exec(text) ?? []
  return life === undefined ? null : { life, seq: Number(digits) }
}
