import type { Invoice, InvoiceRecord } from '../../domain/invoice.ts'
import {
  type Content,
  type ContentsReads,
  type ContentsWrites,
  type Kind,
  type KindName,
  kinds,
  type Value,
} from '../contents.ts'
import type { Stream, WriteTransaction } from '../store.ts'
import { columnsOf, saveScope } from './credentials.ts'
import { type Db, insertContents, parameterList } from './db.ts'
import { raiseTo } from './shared-rows.ts'

export function contentsReads(db: Db): ContentsReads {
  return {
    async readContents(name, after, limit) {
      const { columns, keyLength, tables }: Kind = kinds[name]
      // A kind of items without a key has only one item, so no other page follows.
      if (after !== null && keyLength === 0) return []
      const values = after === null ? [] : after.slice(0, keyLength)
      const key = columns.slice(0, keyLength).join(', ')
      let condition = after === null ? 'true' : `(${key}) > (${parameterList(keyLength)})`
      const order = keyLength === 0 ? '' : `ORDER BY ${key}`
      if (db.isCitus && keyLength > 0) {
        // Finds the last key of the page first. Otherwise each node of Citus would send a whole page of rows.
        const [end] = await db.query<Record<string, Value>>(
          `SELECT ${key} FROM fatura.${tables[0]} WHERE ${condition} ${order} OFFSET $${values.length + 1} LIMIT 1`,
          [...values, limit - 1],
        )
        if (end !== undefined) {
          condition += ` AND (${key}) <= (${parameterList(keyLength, values.length)})`
          values.push(...Object.values(end))
        }
      }
      const rows = await db.query<Record<string, Value>>(
        `SELECT ${columnsOf(db, name)} FROM ${sourceOf(name)} WHERE ${condition} ${order} LIMIT $${values.length + 1}`,
        [...values, limit],
      )
      return rows.map(row => columns.map(column => row[column] ?? null))
    },
  }
}

function sourceOf(name: KindName): string {
  return name === 'invoices'
    ? `(SELECT i.customer_id, i.id, i.summary, l.lines, i.observed_stamp, i.answered_stamp, i.document, i.payment
        FROM fatura.invoices i
        LEFT JOIN fatura.invoice_lines l ON l.customer_id = i.customer_id AND l.invoice_id = i.id) AS whole`
    : `fatura.${kinds[name].tables[0]}`
}

type InvoiceWrites = Pick<
  WriteTransaction,
  'saveInvoices' | 'deleteInvoice' | 'removeInvoice' | 'findKnown' | 'saveStream'
>

/**
 * Invoices and streams are written by their own functions, because other tables are derived from them. All other items are written as plain
 * rows.
 */
export function contentsWrites(db: Db, tx: InvoiceWrites): ContentsWrites {
  return {
    async writeContents(name, contents) {
      if (name === 'invoices') {
        await removeLater(tx, contents)
        await tx.saveInvoices(contents.map(readRecord), contents.map(stampOf), contents.map(answeredAtOf))
      } else if (name === 'streams')
        for (const [name, cursor, succeeded_at, failed_at, error] of contents)
          await tx.saveStream({ name, cursor, succeeded_at, failed_at, error } as Stream)
      else if (name === 'stamps') await db.query(raiseTo, [contents[0]?.[0] ?? 0])
      else await writeRows(db, name, contents)
      if (name !== 'tokens' && name !== 'keys') return
      const { columns }: Kind = kinds[name]
      const customersAt = columns.indexOf('customers')
      // A token for every customer has null instead of a list. JSON.parse converts the text "null" to null.
      for (const content of contents)
        await saveScope(db, String(content[0]), JSON.parse(String(content[customersAt])))
    },
    async removeContents(name, contents) {
      if (name !== 'invoices') return removeRows(db, name, contents)
      for (const content of contents) {
        const [customerId, id] = content
        await tx.deleteInvoice(String(customerId), String(id), stampOf(content))
      }
    },
  }
}

/** Removes invoices that were observed later in the target than in the source. Otherwise `saveInvoices` would keep the target's version. */
async function removeLater(tx: InvoiceWrites, contents: readonly Content[]): Promise<void> {
  const stamps = new Map(contents.map(content => [`${content[0]} ${content[1]}`, stampOf(content)]))
  const keys = contents.map(([customerId, id]) => ({ customer_id: String(customerId), id: String(id) }))
  for (const { customer_id, id, observed_stamp } of await tx.findKnown(keys))
    if (observed_stamp > (stamps.get(`${customer_id} ${id}`) ?? 0)) await tx.removeInvoice(customer_id, id)
}

function readRecord([, , summary, lines, , , document, payment]: Content): InvoiceRecord {
  return {
    invoice: JSON.parse(String(summary)) as Invoice,
    lines: lines === null ? null : JSON.parse(String(lines)),
    document: document == null ? null : JSON.parse(String(document)),
    payment: JSON.parse(String(payment)),
  }
}

function stampOf([, , , , observedAt]: Content): number {
  return Number(observedAt)
}

function answeredAtOf([, , , , , answeredAt]: Content): number {
  return Number(answeredAt)
}

/** Writes the items as plain rows, in place of the rows with the same keys. Records no changes in the feed. */
export async function writeRows(db: Db, name: KindName, contents: readonly Content[]): Promise<void> {
  const { columns, keyLength }: Kind = kinds[name]
  const key = columns.slice(0, name === 'boundAccounts' ? 1 : keyLength)
  const changes = columns.slice(key.length).map(column => `${column} = ${newValue(column)}`)
  const rest = `ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${changes.join(', ')}`
  await insertContents(db, name, contents, rest)
}

/** Returns the new value of a column. A token or key that was revoked on either side stays revoked, with the earlier time. */
function newValue(column: string): string {
  return column === 'revoked_at'
    ? 'CASE WHEN stored.revoked_at <= excluded.revoked_at OR excluded.revoked_at IS NULL THEN stored.revoked_at ELSE excluded.revoked_at END'
    : `excluded.${column}`
}

export async function removeRows(db: Db, name: KindName, contents: readonly Content[]): Promise<void> {
  const { columns, keyLength, tables }: Kind = kinds[name]
  const key = columns.slice(0, keyLength)
  const condition = key.map((column, i) => `${column} = $${i + 1}`).join(' AND ')
  for (const content of contents)
    await db.query(`DELETE FROM fatura.${tables[0]} WHERE ${condition}`, content.slice(0, keyLength))
}
