/** Facts of a store, read without changing it, whatever its schema's version: for others to judge. */
export interface StoreFacts {
  engine: string
  schema: number
  needed: number
  /** The schema's fault, and what to do; null when it is this Fatura's. */
  schemaProblem: string | null
  /** Whether the API's way of opening it refuses to write. */
  isReadOnly: boolean
  server: ServerFacts | null
  file: FileFacts | null
}

/** The versions of PostgreSQL that the suite runs on. */
export const supportedMajors = { oldest: 15, newest: 18 } as const

/** The reason why a server or its database cannot be used, and what to do about it; null when it can. */
export function whatServerLacks({ major, encoding }: Pick<ServerFacts, 'major' | 'encoding'>) {
  if (major < supportedMajors.oldest)
    return {
      found: `PostgreSQL ${major} is too old`,
      next: `Fatura needs ${supportedMajors.oldest} or newer: upgrade the server.`,
    }
  if (encoding !== 'UTF8')
    return {
      found: `the database's encoding is ${encoding}, and Fatura needs UTF8`,
      next: "Create another: CREATE DATABASE fatura ENCODING 'UTF8' TEMPLATE template0",
    }
  return null
}

export interface NodeFacts {
  /** Host and port. */
  at: string
  /** Why it did not answer; null when it did. */
  failure: string | null
  isStandby: boolean
  isReadOnly: boolean
  /** Transactions that were prepared over a minute ago, and neither committed nor rolled back since. */
  stuck: number
  isPublic: boolean
}

export interface ServerFacts {
  major: number
  /** Encoding of the database, as PostgreSQL names it; UTF8 unless it was made otherwise. */
  encoding: string
  /** In milliseconds since the epoch. */
  clock: number
  /** Delay of a replica, in milliseconds; null on a primary. */
  lag: number | null
  /** Tables and functions that do not lie on Citus as they should; null where there is no Citus. */
  misplaced: readonly string[] | null
  nodes: readonly NodeFacts[] | null
  /** Whether each session has its own prepared statements: not behind a pooler in transaction mode that knows of none. */
  keepsStatements: boolean
  role: string
  /** The schema's tables, and those of them that the role may not both read and write. */
  tables: readonly string[]
  unwritable: readonly string[]
}

export interface FileFacts {
  path: string
  /** `wal` unless something changed it. */
  journalMode: string
  logBytes: number
  /** Whether this user may write the file and its folder: SQLite needs both. */
  isWritable: boolean
  isPublic: boolean
  isOpenToAll: boolean
}

export interface ConnectionUse {
  kind: string
  open: number
  idle: number
  /** Reads that are on their way, or wait for a connection. */
  reads: number
}
