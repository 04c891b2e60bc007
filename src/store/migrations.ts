/**
 * How a schema grows: one SQL file a version, and for some a pass over the rows after it. A released file never changes;
 * a store keeps the hash of each one that made it, so that it is known by its content and not by a number alone.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type { Db } from './shared/db.ts'
import { StoreError } from './store.ts'

export interface Migration {
  /** From 1 on, without a gap. */
  version: number
  sql: string
  sha256: string
}

/** The files of an engine, such as 0001.sql, in order. */
export function readMigrations(folder: URL): readonly Migration[] {
  const files = readdirSync(folder).filter(name => name.endsWith('.sql'))
  return files.sort().map((name, index) => {
    const version = index + 1
    if (name !== `${String(version).padStart(4, '0')}.sql`)
      throw new Error(`${name} is out of order: migrations are numbered from 0001.sql on, without a gap`)
    const sql = readFileSync(new URL(name, folder), 'utf8')
    return { version, sql, sha256: createHash('sha256').update(sql).digest('hex') }
  })
}

/** Of something that a process knew when it started, and that is not there any more. */
export const changedBelow =
  'the schema was changed by a newer Fatura while this process ran. Upgrade it, and start it again'

/** What a store says of its own schema. */
export interface SchemaState {
  /** 0 where there is none yet. */
  version: number
  /** Of the file that made this version; null for a store that does not know. */
  sha256: string | null
  /** Whether a pass over the rows is not at its end. */
  isRewriting: boolean
}

/**
 * A pass over all rows that a migration needs. Each step is committed with the key where the next one begins: a pass that
 * is killed goes on from there.
 */
export interface Rewrite {
  /** What it does, for people who wait for it. */
  title: string
  /** Rewrites what some customers have, those after a key, '' at first. */
  step(db: Db, after: string): Promise<RewriteStep>
}

export interface RewriteStep {
  /** Where the next step begins; null at the end. */
  next: string | null
  /** How many customers it was. */
  customers: number
}

/** By the version whose file they follow. */
export const rewrites: Readonly<Record<number, Rewrite>> = {
  2: { title: 'removing names that no invoice has any more', step: dropLeftParties },
  3: { title: 'noting words that invoices are found by', step: renewTexts },
}

const customersAtOnce = 100

async function dropLeftParties(db: Db, after: string): Promise<RewriteStep> {
  const customers = await db.query<{ customer_id: string }>(
    'SELECT DISTINCT customer_id FROM fatura.parties WHERE customer_id > $1 ORDER BY customer_id LIMIT $2',
    after,
    customersAtOnce,
  )
  for (const { customer_id } of customers)
    await db.query(
      `DELETE FROM fatura.parties WHERE customer_id = $1
         AND party_id NOT IN (SELECT party_id FROM fatura.invoices WHERE customer_id = $1)`,
      customer_id,
    )
  return stepAfter(customers)
}

function stepAfter(customers: readonly { customer_id: string }[]): RewriteStep {
  const next = customers.length < customersAtOnce ? null : (customers.at(-1)?.customer_id ?? null)
  return { next, customers: customers.length }
}

async function renewTexts(db: Db, after: string): Promise<RewriteStep> {
  const customers = await db.query<{ customer_id: string; counted: boolean | number }>(
    'SELECT customer_id, counted FROM fatura.customers WHERE customer_id > $1 ORDER BY customer_id LIMIT $2',
    after,
    customersAtOnce,
  )
  for (const { customer_id, counted } of customers) if (counted) await db.renewTexts(customer_id)
  return stepAfter(customers)
}

export interface MigrationOutcome {
  from: number
  to: number
}

/** Tells of a pass over the rows: what it does, how many customers are done, and which part of those it began with. */
export type OnRewrite = (title: string, customers: number, part: number) => void

/** How many customers a pass has before it, beginning after a key. */
export const countCustomers = 'SELECT count(*) AS n FROM fatura.customers WHERE customer_id > $1'

/** What a schema lacks of another, or has too much, each object by its name; null when they are equal. */
export function differenceOf(
  wanted: ReadonlyMap<string, string>,
  found: ReadonlyMap<string, string>,
): string | null {
  for (const [name, body] of wanted) {
    const other = found.get(name)
    if (other === undefined) return `it has no ${name}`
    if (other !== body) return `its ${name} is another`
  }
  const extra = [...found.keys()].find(name => !wanted.has(name))
  return extra === undefined ? null : `it has a ${extra}`
}

/** Throws unless the schema is exactly the one of these files. `where` begins the sentence, as in "The database x". */
export function checkState(where: string, state: SchemaState, migrations: readonly Migration[]): void {
  const problem = explainState(where, state, migrations)
  if (problem !== null) throw new StoreError(problem)
}

/** Null when the schema is exactly the one of these files. */
export function explainState(
  where: string,
  { version, sha256, isRewriting }: SchemaState,
  migrations: readonly Migration[],
): string | null {
  const needed = migrations.length
  if (version < needed)
    return `${where} has schema version ${version}, this Fatura needs ${needed}. Run: fatura migrate`
  if (version > needed)
    return `${where} has schema version ${version}, newer than this Fatura's ${needed}. Upgrade Fatura.`
  if (sha256 !== migrations.at(-1)?.sha256) return madeElsewhere(where, version).message
  return isRewriting ? `${where} is not completely migrated. Wait for fatura migrate, or run it again.` : null
}

/** What the same number means in another checkout is another schema. */
export function madeElsewhere(where: string, version: number, what?: string): StoreError {
  const difference = what === undefined ? '' : ` (${what})`
  return new StoreError(
    `${where} has a schema version ${version} that is not this Fatura's${difference}: an unreleased version made it. Start with a new store, and run fatura sync or fatura import again.`,
  )
}
