/** Types and cursors of the feed of changes. Imports nothing. */

/** Kinds of changes. `document`: only fields that follow from the certified document changed. */
export const changeKinds = ['created', 'updated', 'deleted', 'document'] as const
export type ChangeKind = (typeof changeKinds)[number]

export interface Change {
  /** Cursor right after this change. Valid only in the feed that returned the change. */
  cursor: string
  customer_id: string
  invoice_id: string
  kind: ChangeKind
  /** Version of the customer's data after this change. */
  version: number
  /** Time at which the change was stored, in UTC with milliseconds. */
  at: string
}

export interface ChangeList {
  changes: Change[]
  /** Cursor for the parameter `after` of the next request. */
  next: string
}

/** A position in a feed. `life` identifies the store that issued the cursor. A position of another store has no meaning here. */
export interface Cursor {
  life: string
  seq: number
}

export function writeCursor({ life, seq }: Cursor): string {
  return `${life}-${seq}`
}

/** Returns null for a text that is not a cursor. */
export function readCursor(text: string): Cursor | null {
  const [, life, digits] = /^([0-9a-f]{12})-(0|[1-9][0-9]{0,15})$/.exec(text) ?? []
  return life === undefined ? null : { life, seq: Number(digits) }
}
