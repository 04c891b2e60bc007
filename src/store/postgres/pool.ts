/** Connections to PostgreSQL: how they are opened, and what their failures mean. */
import { availableParallelism } from 'node:os'
import pg from 'pg'
import { changedBelow } from '../migrations.ts'
import { StoreBusy, StoreError, StoreUnavailable } from '../store.ts'
import { chooseHosts } from './hosts.ts'
import { splitHosts, takesWrites } from './split-hosts.ts'
import { writeOptions } from './write-limits.ts'

/** Counts and moments are 64 bits wide in PostgreSQL, and all of them fit a number here. */
const bigint = 20
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === bigint ? Number : pg.types.getTypeParser(oid, format as 'text'),
}

/** How long a request waits for a connection; then the store counts as out of reach. */
const connectionPatienceMs = 1_500

/** How many reads may wait for one connection of a pool; what comes on top is refused at once. */
const maxWaiting = 200

export function checkCrowd(waiting: number): void {
  if (waiting >= maxWaiting) throw new StoreBusy('Too many reads wait for a connection.')
}

/** Longer than any read takes, and longer than any by a key does; a server that fell silent is given up on. */
const [readPatienceMs, keyPatienceMs] = [5_000, 2_000]

export type ReadPools = ReturnType<typeof openReadPools>

/** The API's connections: shared ones for reads by a key and for lists; a few for searches, so that no list waits for one. */
export function openReadPools(url: string) {
  return {
    by_key: openReadPool(url, keyPatienceMs, { max: 2, pipeline: true }),
    others: openReadPool(url, readPatienceMs, { max: 6, pipeline: true }),
    // A search takes a core of the database: on a small machine, only one runs at a time.
    searches: openReadPool(url, readPatienceMs, { max: availableParallelism() < 4 ? 1 : 2 }),
  }
}

/** A connection that a pool cannot open names host and port, and no more. With `choose`, it learns them when it connects. */
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

/** The session itself refuses to write. */
export function openReadPool(
  url: string,
  patience = readPatienceMs,
  shape: { max?: number; pipeline?: boolean } = {},
): pg.Pool {
  // Reads are planned once and take microseconds; to compile them would take the server a hundred times as long.
  return openPool(url, `-c default_transaction_read_only=on -c statement_timeout=${patience} -c jit=off`, {
    application_name: 'fatura-api',
    connectionTimeoutMillis: connectionPatienceMs,
    query_timeout: patience + 500,
    ...shape,
  })
}

/** For commands that only look: as patient as a writer, in sessions that refuse to write. */
export function openOperatorPool(url: string): pg.Pool {
  return openPool(url, `${writeOptions()} -c default_transaction_read_only=on`, {
    application_name: 'fatura-operator',
    connectionTimeoutMillis: 10_000,
    max: 2,
  })
}

/** A writer's connections: few, and patient; enough that two that wait for another writer's locks keep no third back. */
export function openWritePool(url: string, lockPatienceMs?: number): pg.Pool {
  return openPool(url, writeOptions(lockPatienceMs), {
    application_name: writerName,
    connectionTimeoutMillis: 10_000,
    max: 5,
  })
}

const writerName = 'fatura-writer'

/** A connection that breaks is replaced when it is needed; without a listener it would end us, in use or not. */
function openPool(url: string, options: string, more: pg.PoolConfig): pg.Pool {
  const hosts = splitHosts(url)
  const configs = (hosts?.urls ?? [url]).map(each => ({ ...configureOne(each, options), ...more }))
  const fits = more.application_name === writerName ? takesWrites : hosts?.fits
  const choose = hosts && chooseHosts(configs, fits ?? takesWrites)
  const pool = new pg.Pool({ ...configs[0], Client: namedClient(choose) })
  pool.on('connect', client => client.on('error', () => {}))
  return pool.on('error', () => {})
}

/** Options of all kinds. The address may name options of its own; the session's come after them, and win. */
function configureOne(url: string, options: string): pg.PoolConfig {
  if (!URL.canParse(url))
    throw new StoreError(
      'DATABASE_URL is not a valid address; it looks like postgres://user:password@host:5432/name',
    )
  const address = new URL(url)
  const given = address.searchParams.get('options')
  // The driver would let the address's options replace the session's.
  address.searchParams.delete('options')
  return {
    connectionString: given === null ? url : address.href,
    options: given === null ? options : `${given} ${options}`,
    types,
    // A peer that died without a word is found out within half a minute, whatever a statement may take.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // A connection that nobody uses keeps no process alive, though its peer fell silent and never closes it.
    allowExitOnIdle: true,
  }
}

export async function read<Row extends pg.QueryResultRow>(pool: pg.Pool, query: pg.QueryConfig) {
  checkCrowd(pool.waitingCount)
  return (await twiceIfBroken(() => pool.query<Row>(query))).rows
}

/** Runs a read. A connection that turns out to be broken is replaced once, since a read may be done twice. */
export async function twiceIfBroken<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (first) {
    if (!isBroken(first)) throw translate(first)
    return explain(ask())
  }
}

/** Translates failures of the database. Others within a transaction stay as they are. */
export async function explain<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked
  } catch (error) {
    throw translate(error)
  }
}

/** Ends a transaction without a trace. A connection that cannot even roll back is thrown away; the server rolls back by itself. */
export async function rollBack(client: pg.PoolClient, broken?: Error): Promise<void> {
  const failure = await client.query('ROLLBACK').then(
    () => broken,
    (failed: Error) => failed,
  )
  client.release(failure)
}

/** The server closed the connection, or the network did: not a refusal, not a time-out. */
function isBroken(error: unknown): boolean {
  const { code = '', message } = error as NodeJS.ErrnoException
  return (
    ['ECONNRESET', 'EPIPE', '57P01'].includes(code) ||
    /terminated unexpectedly|not queryable/.test(message) ||
    bouncerLostServer.test(message)
  )
}

/** Messages of PgBouncer, with various codes, when a server it had given to us went away, or it has none for us yet. */
const bouncerLostServer =
  /server conn crashed|server closed the connection|server_login_retry|query_wait_timeout|client_idle_timeout|pgbouncer cannot connect/i

/** The server's own code, also of a failure that was translated. */
export function codeOf(error: unknown): string {
  const { cause = error } = error as Error
  return (cause as NodeJS.ErrnoException).code ?? ''
}

/** Two transactions waited for each other, or could not be put in an order: what was ended may be done again. */
export function isCrossing(error: unknown): boolean {
  return /^40(P01|001)$/.test(codeOf(error))
}

export function isReadOnlyRefusal(error: unknown): boolean {
  return codeOf(error) === '25006'
}

/** Connection failures, lack of resources, shutdown, start-up, cancellation, deadlock, a lock held: what may pass. */
const passing = /^(08|53|57|58000|40|25P03|55P03)/

/** The meaning of a failure: a store that may be back shortly, one that needs somebody, or a fault. */
export function translate(error: unknown): unknown {
  if (error instanceof StoreError) return error
  const { code = '', message } = error as NodeJS.ErrnoException
  const refused = (text: string) => new StoreError(text, { cause: error })
  const unavailable = (text: string) => new StoreUnavailable(text, { cause: error })
  if (message.includes('client password must be a string'))
    return refused('The database asks for a password, and DATABASE_URL has none.')
  if (message.includes('unsupported startup parameter'))
    return refused(`PgBouncer refused the connection: ${message}. Set ignore_startup_parameters = options.`)
  // Bytes that are no PostgreSQL's become an error of that class, too, but have no code.
  if (!(error instanceof pg.DatabaseError) || code === '') {
    const tried = readTriedAddress(error) ?? readTriedAddress((error as Error).cause)
    const [where, next] =
      tried === null ? ['', ''] : [` at ${tried}`, '. Is PostgreSQL running there? Check DATABASE_URL.']
    // Several addresses that all fail are one error without a message.
    return unavailable(`The database${where} cannot be reached: ${message || code}${next}`)
  }
  if (/^(28|3D)/.test(code))
    return refused(`The database refused the connection: ${message}. Check DATABASE_URL.`)
  if (isReadOnlyRefusal(error)) {
    const node = / on ([^ ]+:\d+)$/m.exec(error.where ?? '')?.[1]
    return node === undefined
      ? refused(
          "This database is read-only here: it is a replica, or the role is the API's. Use the primary, and a role that may write.",
        )
      : unavailable(
          `The node ${node} of Citus takes no writes: it is a standby, or its sessions are read-only. Run: fatura doctor`,
        )
  }
  if (code === '42501')
    return refused(`The database role may not do this: ${message}. See docs/postgresql.md for its grants.`)
  // An index row that is too large: every engine takes texts of the same length, so this came from elsewhere.
  if (code === '54000')
    return refused(`The database cannot hold a record, a text of it is too long: ${message}.`)
  if (code === '22P05' || code === '22021')
    return refused(
      `The database cannot hold a text: ${message}. Its encoding must be UTF8; see fatura doctor.`,
    )
  // A statement that was prepared is there already, or is not: what is in between gave us another's session.
  if (code === '42P05' || code === '26000')
    return refused(
      `PgBouncer does not keep prepared statements apart: ${message}. Use 1.21 or newer with max_prepared_statements = 100, or pool_mode = session.`,
    )
  // A function, a table, a column is missing, or is not what it was when a statement was prepared.
  if (/^(42883|42P01|42703)$/.test(code) || message.startsWith('cached plan must not'))
    return unavailable(`${message}: ${changedBelow}`)
  return passing.test(code) ? unavailable(`The database cannot do this right now: ${message}`) : error
}

function readTriedAddress(error: unknown): string | null {
  return (error as { triedAddress?: string } | undefined)?.triedAddress ?? null
}
