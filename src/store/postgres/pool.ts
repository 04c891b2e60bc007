/** Opens connections to PostgreSQL, and explains their failures. */
import { availableParallelism } from 'node:os'
import pg from 'pg'
import { changedBelow } from '../migrations.ts'
import { StoreBusy, StoreError, StoreUnavailable } from '../store.ts'
import { chooseHosts } from './choose-host.ts'
import { splitHosts, takesWrites } from './hosts.ts'
import { writeOptions } from './write-limits.ts'

/** PostgreSQL's type of counts and times. All of their values fit into a JavaScript number. */
const bigint = 20
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === bigint ? Number : pg.types.getTypeParser(oid, format as 'text'),
}

/** Time in milliseconds that a request waits for a connection. After it, the store counts as unavailable. */
const connectionPatienceMs = 1_500

/** Maximum number of reads that wait for a connection of a pool. Further reads are refused at once. */
const maxWaiting = 200

export function checkCrowd(waiting: number): void {
  if (waiting >= maxWaiting) throw new StoreBusy('Too many reads wait for a connection.')
}

/**
 * Time limits in milliseconds: one for reads in general, and a shorter one for reads by a key. No normal read takes so long. When a server
 * is silent for longer, the read fails.
 */
const [readPatienceMs, keyPatienceMs] = [5_000, 2_000]

export type ReadPools = ReturnType<typeof openReadPools>

/**
 * The API's connections. Reads by a key and lists share connections. Searches have connections of their own, so that no list waits for a
 * search.
 */
export function openReadPools(url: string) {
  return {
    by_key: openReadPool(url, keyPatienceMs, { max: 2, pipeline: true }),
    others: openReadPool(url, readPatienceMs, { max: 6, pipeline: true }),
    // A search uses a whole core of the database. On a small machine, only one search runs at a time.
    searches: openReadPool(url, readPatienceMs, { max: availableParallelism() < 4 ? 1 : 2 }),
  }
}

/**
 * Creates a client whose connection errors show host and port, and nothing else of the address. `choose` returns the host when the client
 * connects.
 */
function namedClient(choose: ReturnType<typeof chooseHosts> | null): typeof pg.Client {
  return class extends pg.Client {
    override connect(): Promise<this>
    override connect(callback: (error: Error) => void): void
    override connect(callback?: (error: Error) => void): Promise<this> | undefined {
      if (callback === undefined) return super.connect() as Promise<this>
      const connectTo = (chosen = {}) => {
        Object.assign(this, chosen)
        const triedAddress = `${this.host}:${this.port}`
        super.connect((error: Error) => callback(error && Object.assign(error, { triedAddress })))
      }
      if (choose === null) connectTo()
      else choose().then(connectTo, callback)
      return undefined
    }
  }
}

/** Opens a pool for reading. The sessions themselves refuse to write. */
export function openReadPool(
  url: string,
  patience = readPatienceMs,
  shape: { max?: number; pipeline?: boolean } = {},
): pg.Pool {
  // Reads are planned once and take microseconds. Compiling them with JIT would take the server a hundred times as long.
  return openPool(url, `-c default_transaction_read_only=on -c statement_timeout=${patience} -c jit=off`, {
    application_name: 'fatura-api',
    connectionTimeoutMillis: connectionPatienceMs,
    query_timeout: patience + 500,
    ...shape,
  })
}

/** Opens a pool for commands that only read. Its time limits are those of a writer, but its sessions refuse to write. */
export function openOperatorPool(url: string): pg.Pool {
  return openPool(url, `${writeOptions()} -c default_transaction_read_only=on`, {
    application_name: 'fatura-operator',
    connectionTimeoutMillis: 10_000,
    max: 2,
  })
}

/**
 * Opens a writer's pool with few connections and long time limits. Two connections that wait for another writer's locks do not block a
 * third one.
 */
export function openWritePool(url: string, lockPatienceMs?: number): pg.Pool {
  return openPool(url, writeOptions(lockPatienceMs), {
    application_name: writerName,
    connectionTimeoutMillis: 10_000,
    max: 5,
  })
}

const writerName = 'fatura-writer'

/**
 * Opens a pool. A broken connection is replaced when a query needs one. Without the error listeners, a broken connection would end the
 * process.
 */
function openPool(url: string, options: string, more: pg.PoolConfig): pg.Pool {
  const hosts = splitHosts(url)
  const configs = (hosts?.urls ?? [url]).map(each => ({ ...configureOne(each, options), ...more }))
  const fits = more.application_name === writerName ? takesWrites : hosts?.fits
  const choose = hosts && chooseHosts(configs, fits ?? takesWrites)
  const pool = new pg.Pool({ ...configs[0], Client: namedClient(choose) })
  pool.on('connect', client => client.on('error', () => {}))
  return pool.on('error', () => {})
}

/** Returns the driver's configuration for one host. Options in the address come first, so that the session's own options override them. */
function configureOne(url: string, options: string): pg.PoolConfig {
  if (!URL.canParse(url))
    throw new StoreError(
      'DATABASE_URL is not a valid address. It must look like postgres://user:password@host:5432/name',
    )
  const address = new URL(url)
  const given = address.searchParams.get('options')
  // The driver would replace the session's options by the address's options, so the address must not contain any.
  address.searchParams.delete('options')
  return {
    connectionString: given === null ? url : address.href,
    options: given === null ? options : `${given} ${options}`,
    types,
    // Keep-alive finds a dead peer within half a minute, however long a statement may take.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // An idle connection does not keep the process alive, even when its silent peer never closes it.
    allowExitOnIdle: true,
  }
}

export async function read<Row extends pg.QueryResultRow>(pool: pg.Pool, query: pg.QueryConfig) {
  checkCrowd(pool.waitingCount)
  return (await twiceIfBroken(() => pool.query<Row>(query))).rows
}

/** Runs a read. When its connection is broken, the read runs once more over a new one, which is safe for reads. */
export async function twiceIfBroken<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (first) {
    if (!isBroken(first)) throw translate(first)
    return explain(ask())
  }
}

/** Waits for a query and translates a failure of the database. */
export async function explain<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked
  } catch (error) {
    throw translate(error)
  }
}

/**
 * Rolls a transaction back and releases its connection. A connection that cannot roll back is closed, and the server then rolls back by
 * itself.
 */
export async function rollBack(client: pg.PoolClient, broken?: Error): Promise<void> {
  const failure = await client.query('ROLLBACK').then(
    () => broken,
    (failed: Error) => failed,
  )
  client.release(failure)
}

/** True when the server or the network closed the connection. A refusal or a timeout does not count. */
function isBroken(error: unknown): boolean {
  const { code = '', message } = error as NodeJS.ErrnoException
  return (
    ['ECONNRESET', 'EPIPE', '57P01'].includes(code) ||
    /terminated unexpectedly|not queryable/.test(message) ||
    bouncerLostServer.test(message)
  )
}

/** PgBouncer's messages when it has lost its connection to the server, or has none yet. Their codes vary. */
const bouncerLostServer =
  /server conn crashed|server closed the connection|server_login_retry|query_wait_timeout|client_idle_timeout|pgbouncer cannot connect/i

/** Returns the server's own error code, also from a translated failure. */
export function codeOf(error: unknown): string {
  const { cause = error } = error as Error
  return (cause as NodeJS.ErrnoException).code ?? ''
}

/** True for a deadlock or a serialization failure. The transaction was rolled back and may run again. */
export function isCrossing(error: unknown): boolean {
  return /^40(P01|001)$/.test(codeOf(error))
}

export function isReadOnlyRefusal(error: unknown): boolean {
  return codeOf(error) === '25006'
}

/**
 * PostgreSQL's codes for failures that may pass: connection failures, lack of resources, shutdown, start-up, cancellation, deadlock, a held
 * lock.
 */
const passing = /^(08|53|57|58000|40|25P03|55P03)/

/** Translates a failure. The store may be available again soon, or need an operator, or the failure is a fault of the program. */
export function translate(error: unknown): unknown {
  if (error instanceof StoreError) return error
  const { code = '', message } = error as NodeJS.ErrnoException
  const refused = (text: string) => new StoreError(text, { cause: error })
  const unavailable = (text: string) => new StoreUnavailable(text, { cause: error })
  if (message.includes('client password must be a string'))
    return refused('The database asks for a password, and DATABASE_URL has none.')
  if (message.includes('unsupported startup parameter'))
    return refused(`PgBouncer refused the connection: ${message}. Set ignore_startup_parameters = options.`)
  // Bytes that are not PostgreSQL's protocol also become a `DatabaseError`, but without a code.
  if (!(error instanceof pg.DatabaseError) || code === '') {
    const tried = readTriedAddress(error) ?? readTriedAddress((error as Error).cause)
    const [where, next] =
      tried === null
        ? ['', '']
        : [` at ${tried}`, '. Check that PostgreSQL is running there, and check DATABASE_URL.']
    // An error that combines the failures of several addresses has no message.
    return unavailable(`The database${where} cannot be reached: ${message || code}${next}`)
  }
  // A running process meets this after a change of the password. It recovers when the password fits again.
  if (/^(28|3D)/.test(code))
    return unavailable(`The database refused the connection: ${message}. Check DATABASE_URL.`)
  if (isReadOnlyRefusal(error)) {
    const node = / on ([^ ]+:\d+)$/m.exec(error.where ?? '')?.[1]
    return node === undefined
      ? refused(
          "This database is read-only, because it is a replica or the role is the API's. Use the primary and a role that may write.",
        )
      : unavailable(
          `The node ${node} of Citus accepts no writes, because it is a standby or its sessions are read-only. Run: fatura doctor`,
        )
  }
  if (code === '42501')
    return refused(`The database role may not do this: ${message}. See docs/postgresql.md for its grants.`)
  // An index row is too large. Every engine limits texts to the same length, so another program has written this text.
  if (code === '54000')
    return refused(`The database cannot store a record, because a text in it is too long: ${message}.`)
  if (code === '22P05' || code === '22021')
    return refused(
      `The database cannot store a text: ${message}. Its encoding must be UTF8. See "fatura doctor".`,
    )
  // A prepared statement unexpectedly exists or is missing. A pooler has given this client the session of another client.
  if (code === '42P05' || code === '26000')
    return refused(
      `PgBouncer does not keep prepared statements apart: ${message}. Use 1.21 or newer with max_prepared_statements = 100, or pool_mode = session.`,
    )
  // A function, table or column is missing, or has changed since a statement was prepared.
  if (/^(42883|42P01|42703)$/.test(code) || message.startsWith('cached plan must not'))
    return unavailable(`${message}: ${changedBelow}`)
  return passing.test(code) ? unavailable(`The database cannot do this right now: ${message}`) : error
}

function readTriedAddress(error: unknown): string | null {
  return (error as { triedAddress?: string } | undefined)?.triedAddress ?? null
}
