/** Facts about a store of any schema version. Reading them never changes the store. */
export interface StoreFacts {
  engine: string
  schema: number
  needed: number
  /** What is wrong with the schema, and what to do about it. Null when the schema fits this version of Fatura. */
  schemaProblem: string | null
  /** True when the store refuses to write over a connection like the API's. */
  isReadOnly: boolean
  server: ServerFacts | null
  file: FileFacts | null
}

/** Versions of PostgreSQL on which the test suite runs. */
export const supportedMajors = { oldest: 15, newest: 18 } as const

/** Returns why a server or its database cannot be used, and what to do about it. Null when it can be used. */
export function whatServerLacks({ major, encoding }: Pick<ServerFacts, 'major' | 'encoding'>) {
  if (major < supportedMajors.oldest)
    return {
      found: `PostgreSQL ${major} is too old`,
      next: `Fatura needs ${supportedMajors.oldest} or newer. Upgrade the server.`,
    }
  if (encoding !== 'UTF8')
    return {
      found: `the database's encoding is ${encoding}, and Fatura needs UTF8`,
      next: "Create another: CREATE DATABASE fatura ENCODING 'UTF8' TEMPLATE template0",
    }
  return null
}

export interface NodeFacts {
  /** Host and port of the node. */
  at: string
  /** Reason why the node did not answer. Null when it answered. */
  failure: string | null
  isStandby: boolean
  isReadOnly: boolean
  /** Number of transactions that were prepared over a minute ago and are still neither committed nor rolled back. */
  stuck: number
  isPublic: boolean
}

export interface ServerFacts {
  major: number
  /** Encoding of the database as PostgreSQL names it, such as UTF8. */
  encoding: string
  /** Time of the server's clock, in milliseconds since the epoch. */
  clock: number
  /** Delay of a replica in milliseconds. Null on a primary. */
  lag: number | null
  /** Tables and functions that are not distributed on Citus as they should be. Null without Citus. */
  misplaced: readonly string[] | null
  nodes: readonly NodeFacts[] | null
  /** True when each session has its own prepared statements. False behind a pooler in transaction mode that does not support them. */
  keepsStatements: boolean
  role: string
  /** All tables of the schema. `unwritable` lists the tables that the role cannot both read and write. */
  tables: readonly string[]
  unwritable: readonly string[]
}

export interface FileFacts {
  path: string
  /** SQLite's journal mode, which is `wal` unless something changed it. */
  journalMode: string
  logBytes: number
  /** True when this user may write both the file and its folder. SQLite needs both. */
  isWritable: boolean
  isPublic: boolean
  isOpenToAll: boolean
}

export interface ConnectionUse {
  kind: string
  open: number
  idle: number
  /** Number of reads that are running or wait for a connection. */
  reads: number
}
