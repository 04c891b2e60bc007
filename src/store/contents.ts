/** Lists everything that a store holds. Copies and comparisons use this list. A test compares it with the tables of both engines. */

export type Value = string | number | null

/** The values of one item of a store, in the order of the columns of its kind. */
export type Content = readonly Value[]

export interface Kind {
  names: readonly [one: string, several: string]
  tables: readonly string[]
  columns: readonly string[]
  /** Number of leading columns that form the key. Items are sorted by this key. */
  keyLength: number
  /**
   * True when items of this kind may be deleted from a store. The target of a copy may then hold items that the source no longer has.
   * Without it, such an item is foreign and the copy is refused.
   */
  mayGo?: true
}

/** Kinds of items in the order in which a copy writes them. Streams come last, because they state how fresh all other data is. */
export const kinds = {
  boundAccounts: {
    names: ['account', 'accounts'],
    tables: ['bound_accounts'],
    columns: ['system', 'account', 'bound_at'],
    keyLength: 2,
  },
  invoices: {
    names: ['invoice', 'invoices'],
    tables: ['invoices', 'invoice_lines'],
    columns: [
      'customer_id',
      'id',
      'summary',
      'lines',
      'observed_stamp',
      'answered_stamp',
      'document',
      'payment',
    ],
    keyLength: 2,
  },
  tombstones: {
    names: ['deleted invoice', 'deleted invoices'],
    tables: ['tombstones'],
    columns: ['customer_id', 'id', 'observed_stamp', 'answered_stamp'],
    keyLength: 2,
    mayGo: true,
  },
  documents: {
    names: ['document', 'documents'],
    tables: ['documents'],
    columns: [
      'id',
      'status',
      'reference',
      'uid',
      'date',
      'client_id',
      'client_tax_id',
      'body',
      'misses',
      'observed_stamp',
    ],
    keyLength: 1,
  },
  clients: {
    names: ['client of documents', 'clients of documents'],
    tables: ['document_clients'],
    columns: ['id', 'tax_id', 'observed_stamp'],
    keyLength: 1,
    mayGo: true,
  },
  relations: {
    names: ['list of related documents', 'lists of related documents'],
    tables: ['document_relations'],
    columns: ['id', 'relations', 'observed_stamp'],
    keyLength: 1,
    mayGo: true,
  },
  links: {
    names: ['link', 'links'],
    tables: ['links'],
    columns: ['customer_id', 'invoice_id', 'state', 'claimed_id', 'ix_id', 'claim', 'number'],
    keyLength: 2,
    mayGo: true,
  },
  journal: {
    names: ['journal entry', 'journal entries'],
    tables: ['journal'],
    columns: ['customer_id', 'invoice_id', 'cause', 'type', 'happened_at', 'at', 'outcome', 'detail'],
    keyLength: 3,
    mayGo: true,
  },
  setAside: {
    names: ['record set aside', 'records set aside'],
    tables: ['set_aside'],
    columns: ['system', 'kind', 'id', 'reason', 'asked_stamp', 'due_at', 'first_at', 'last_at', 'tries'],
    keyLength: 3,
    mayGo: true,
  },
  tokens: {
    names: ['token', 'tokens'],
    tables: ['tokens'],
    columns: ['id', 'name', 'hash', 'customers', 'created_at', 'expires_at', 'revoked_at'],
    keyLength: 1,
  },
  keys: {
    names: ['key of links', 'keys of links'],
    tables: ['keys'],
    columns: ['kid', 'name', 'x', 'customers', 'created_at', 'revoked_at'],
    keyLength: 1,
  },
  outgoingWebhooks: {
    names: ['outgoing webhook', 'outgoing webhooks'],
    tables: ['outgoing_webhooks'],
    columns: [
      'id',
      'url',
      'customer_ids',
      'secret',
      'private_key',
      'cursor',
      'state',
      'attempts',
      'next_at',
      'error',
      'created_at',
    ],
    keyLength: 1,
  },
  stamps: {
    names: ['stamp', 'stamps'],
    tables: ['observation'],
    columns: ['last_stamp'],
    keyLength: 0,
    mayGo: true,
  },
  streams: {
    names: ['stream', 'streams'],
    tables: ['streams'],
    columns: ['name', 'cursor', 'succeeded_at', 'failed_at', 'error'],
    keyLength: 1,
  },
} as const satisfies Record<string, Kind>

export type KindName = keyof typeof kinds

export function formatCount(kind: KindName, n: number): string {
  const [one, several] = kinds[kind].names
  return `${n} ${n === 1 ? one : several}`
}

export const kindNames = Object.keys(kinds) as KindName[]

/** Tables that a copy leaves out, each with the reason. */
export const otherTables = {
  customers: 'made from the invoices',
  invoice_payments: 'made from the invoices',
  account_entries: 'made from the invoices',
  counters: 'made from the invoices',
  scopes: 'made from the tokens and the keys',
  freshness: 'made from the streams',
  changes: 'of this very store: its feed begins with the end of the copy, and earlier cursors expire',
  commits: 'as the changes',
  feed: 'as the changes',
  lease: 'of the process that runs now',
  rechecks: 'of this very store: a copy is looked at again by itself',
  corrections: 'as the rechecks',
  migrations: 'of the schema itself',
} as const

export interface ContentsReads {
  /** Returns items of a kind, sorted by key, starting behind the key `after`. */
  readContents(kind: KindName, after: Content | null, limit: number): Promise<Content[]>
}

export interface ContentsWrites {
  /** Writes items in place of those with the same keys. A token or key that was revoked stays revoked. */
  writeContents(kind: KindName, contents: readonly Content[]): Promise<void>
  removeContents(kind: KindName, contents: readonly Content[]): Promise<void>
}
