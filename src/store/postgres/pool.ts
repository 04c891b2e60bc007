/** Connections to PostgreSQL: how they are opened, and what their failures mean. */
import pg from 'pg'
import { StoreError, StoreUnavailable } from '../store.ts'

/** Counts and moments are 64 bits wide in PostgreSQL, and all of them fit a number here. */
const bigint = 20
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === bigint ? Number : pg.types.getTypeParser(oid, format as 'text'),
}

/** How long a request waits for a connection; then the store counts as out of reach. */
const connectionPatience = 1_500

/** Longer than any read takes; a server that fell silent is given up on. */
const readPatience = 5_000

/** The API's connections. The session itself refuses to write. */
export function openReadPool(url: string): pg.Pool {
  return watch(
    new pg.Pool({
      ...parse(url),
      types,
      max: 10,
      application_name: 'fatura-api',
      connectionTimeoutMillis: connectionPatience,
      query_timeout: readPatience + 500,
      options: `-c default_transaction_read_only=on -c statement_timeout=${readPatience}`,
    }),
  )
}

/** A writer's connections: few, and patient. */
export function openWritePool(url: string): pg.Pool {
  return watch(
    new pg.Pool({
      ...parse(url),
      types,
      max: 2,
      application_name: 'fatura-writer',
      connectionTimeoutMillis: 10_000,
      options: '-c lock_timeout=30000',
    }),
  )
}

function parse(url: string): pg.PoolConfig {
  if (!URL.canParse(url))
    throw new StoreError(
      'DATABASE_URL is not a valid address; it looks like postgres://user:password@host:5432/name',
    )
  return { connectionString: url, keepAlive: true }
}

/** A connection that breaks while nobody uses it is replaced when it is needed; without a listener it would end us. */
function watch(pool: pg.Pool): pg.Pool {
  return pool.on('error', () => {})
}

/** Runs a read. A connection that turns out to be broken is replaced once, since a read may be done twice. */
export async function read<Row extends pg.QueryResultRow>(
  pool: pg.Pool,
  query: pg.QueryConfig,
): Promise<Row[]> {
  try {
    return (await pool.query<Row>(query)).rows
  } catch (first) {
    if (!isBroken(first)) throw translate(first)
    try {
      return (await pool.query<Row>(query)).rows
    } catch (second) {
      throw translate(second)
    }
  }
}

/** The server closed the connection, or the network did: not a refusal, not a time-out. */
function isBroken(error: unknown): boolean {
  const { code, message } = error as NodeJS.ErrnoException
  return (
    code === 'ECONNRESET' || code === 'EPIPE' || code === '57P01' || /terminated unexpectedly/.test(message)
  )
}

/** Connection failures, lack of resources, shutdown, start-up, cancellation, deadlock: what may pass. */
const passing = /^(08|53|57|40)/

/** What a failure means: a store that may be back shortly, one that needs somebody, or a fault. */
export function translate(error: unknown): unknown {
  if (error instanceof StoreError) return error
  const { code = '', message } = error as NodeJS.ErrnoException
  const isServersWord = error instanceof pg.DatabaseError
  if (isServersWord && /^(28|3D)/.test(code))
    return new StoreError(`The database refused the connection: ${message}. Check DATABASE_URL.`, {
      cause: error,
    })
  if (isServersWord && code === '42501')
    return new StoreError(
      `The database role may not do this: ${message}. See docs/operations.md for its grants.`,
      {
        cause: error,
      },
    )
  if (message.includes('unsupported startup parameter'))
    return new StoreError(
      `PgBouncer refused the connection: ${message}. Set ignore_startup_parameters = options.`,
      {
        cause: error,
      },
    )
  if (isServersWord && !passing.test(code)) return error
  return new StoreUnavailable(`The database cannot be reached: ${message}`, { cause: error })
}
