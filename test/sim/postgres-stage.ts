/**
 * Worlds on a real PostgreSQL. Its calls leave the program, and their order is its own: a seed brings back the same upstreams, and not
 * always the same steps. The invariants look at a copy of its tables, which each commit brings up to date.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import {
  migrateStore,
  openConnectorStores,
  openOperatorStore,
  openReadStore,
  openWriteStore,
} from '../../src/store/engines.ts'
import type { ConnectorStores } from '../../src/store/store.ts'
import { createPostgresServer } from '../support/databases/postgres-server.ts'
import { runSql } from '../support/databases/run-sql.ts'
import { openTables } from './invariants.ts'
import { customers } from './upstreams.ts'
import { closeBoth, openApis, type Stage, saveTokens, World } from './world.ts'

/** What the invariants look at. */
const mirrored = [
  ...['observation', 'customers', 'invoices', 'invoice_lines', 'links', 'tombstones', 'counters'],
  ...['documents', 'document_relations', 'document_clients', 'streams', 'freshness', 'set_aside', 'lease'],
]

export async function openPostgresStage(isShort: boolean): Promise<Stage> {
  const given = process.env.TEST_POSTGRES_URL
  const server = given ? null : await createPostgresServer([], 'password')
  await server?.start()
  const address = (given ?? server?.url ?? '').replace(/\/?$/, '/')
  const [template, world] = [`fatura_sim_${process.pid}`, `fatura_world_${process.pid}`]
  const folder = mkdtempSync(join(tmpdir(), 'fatura-sim-'))
  await runSql(address, `CREATE DATABASE ${template}`)
  await migrateStore(address + template)
  const store = await openWriteStore(address + template)
  const tokens = await saveTokens(store)
  await store.close()
  // As on SQLite, one customer has counters from the first.
  const counted = `INSERT INTO fatura.customers (customer_id, version, counted) VALUES ('${customers[0]}', 0, true)`
  await runSql(address + template, counted)
  return {
    async run(seed) {
      await runSql(address, `CREATE DATABASE ${world} TEMPLATE ${template} STRATEGY file_copy`)
      const url = address + world
      const mirror = await Mirror.open(url, join(folder, `${seed}.db`))
      const reader = await openReadStore(url)
      const apps = await openApis(reader)
      const idle: ConnectorStores[] = []
      const tables = openTables(mirror.path)
      const stores = {
        copies: null,
        refresh: () => mirror.refresh(),
        openConnector: () => openConnectorStores(url, { leasePatienceMs: 200 }),
        openOperator: () => openOperatorStore(url),
      }
      try {
        return await new World(seed, { stores, apps, tokens, tables, idle, isShort }).run()
      } finally {
        idle.forEach(closeBoth)
        for (const app of apps) await app.close()
        await reader.close()
        tables.close()
        await mirror.close()
        await runSql(address, `DROP DATABASE ${world} WITH (FORCE)`)
      }
    },
    async close() {
      await runSql(address, `DROP DATABASE ${template} WITH (FORCE)`)
      await server?.stop()
      await server?.remove()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

type Column = { table_name: string; column_name: string; data_type: string }

/** Tables of PostgreSQL, copied to a file of SQLite under the same names. */
class Mirror {
  readonly path: string
  private readonly client: pg.Client
  private readonly db: DatabaseSync
  private readonly tables: ReadonlyMap<string, readonly Column[]>

  static async open(url: string, path: string): Promise<Mirror> {
    const client = new pg.Client(url)
    await client.connect()
    const { rows } = await client.query<Column>(
      "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'fatura' AND table_name = ANY ($1)",
      [mirrored],
    )
    const mirror = new Mirror(
      path,
      client,
      Map.groupBy(rows, ({ table_name }) => table_name),
    )
    await mirror.refresh()
    return mirror
  }

  private constructor(path: string, client: pg.Client, tables: ReadonlyMap<string, readonly Column[]>) {
    this.path = path
    this.client = client
    this.tables = tables
    this.db = new DatabaseSync(path)
    this.db.exec('PRAGMA synchronous = OFF')
    for (const [table, columns] of tables) {
      const kinds = columns.map(({ column_name, data_type }) =>
        data_type === 'text' ? `${column_name} TEXT` : `${column_name} INTEGER`,
      )
      this.db.exec(`CREATE TABLE ${table} (${kinds.join(', ')})`)
    }
  }

  /** As of one moment. */
  async refresh(): Promise<void> {
    const reads = [...this.tables].map(([table, columns]) => {
      const names = columns.map(({ column_name, data_type }) =>
        data_type === 'boolean' ? `${column_name}::int` : column_name,
      )
      return `SELECT ${names.join(', ')} FROM fatura.${table}`
    })
    const text = ['BEGIN ISOLATION LEVEL REPEATABLE READ', ...reads, 'COMMIT'].join('; ')
    const found = (await this.client.query({ text, rowMode: 'array' })) as unknown as pg.QueryArrayResult[]
    this.db.exec('BEGIN')
    for (const [place, [table, columns]] of [...this.tables].entries()) {
      this.db.exec(`DELETE FROM ${table}`)
      const insertion = this.db.prepare(`INSERT INTO ${table} VALUES (${columns.map(() => '?').join(', ')})`)
      for (const row of found[place + 1]?.rows ?? []) insertion.run(...row)
    }
    this.db.exec('COMMIT')
  }

  async close(): Promise<void> {
    this.db.close()
    await this.client.end()
  }
}
