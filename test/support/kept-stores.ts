/** Stores of released versions, kept in `test/store/stores/`. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { createFolder, postgresServer, runSql } from './engines.ts'

export const storesFolder = join(import.meta.dirname, '../store/stores')

export interface KeptStore {
  url: string
  /** Rows of a table, as they lie there. */
  rows(sql: string): Promise<Record<string, unknown>[]>
}

async function restoreSqlite(t: TestContext, version: number): Promise<KeptStore> {
  const path = join(await createFolder(t), 'fatura.db')
  await writeFile(path, gunzipSync(readFileSync(join(storesFolder, `${version}.db.gz`))))
  return { url: `sqlite:${path}`, rows: sql => readRows(`sqlite:${path}`, sql) }
}

async function restorePostgres(t: TestContext, version: number): Promise<KeptStore> {
  const name = `fatura_${randomBytes(6).toString('hex')}`
  const url = postgresServer() + name
  await runSql(postgresServer(), `CREATE DATABASE ${name}`)
  t.after(() => runSql(postgresServer(), `DROP DATABASE ${name} WITH (FORCE)`))
  await runSql(url, gunzipSync(readFileSync(join(storesFolder, `${version}.sql.gz`))).toString())
  return { url, rows: sql => readRows(url, sql) }
}

export const restoreStore = { sqlite: restoreSqlite, postgres: restorePostgres }

/** Tables are named with the schema, as in `fatura.streams`, on either engine. */
export async function readRows(url: string, sql: string): Promise<Record<string, unknown>[]> {
  if (!url.startsWith('sqlite:')) return (await runSql(url, sql)).rows
  const db = new DatabaseSync(url.slice('sqlite:'.length))
  try {
    return db.prepare(sql.replaceAll('fatura.', '')).all()
  } finally {
    db.close()
  }
}

export async function changeRows(url: string, sql: string): Promise<void> {
  if (!url.startsWith('sqlite:')) {
    await runSql(url, sql)
    return
  }
  const db = new DatabaseSync(url.slice('sqlite:'.length))
  db.exec(sql.replaceAll('fatura.', ''))
  db.close()
}
