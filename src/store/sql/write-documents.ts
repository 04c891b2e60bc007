/** Writes documents and the journal within a transaction. */
import { type Document, optionalFields } from '../../domain/document.ts'
import { isInvoiceId } from '../../domain/invoice.ts'
import type { DocumentNames } from '../../domain/link/known.ts'
import type { DocumentWrites, ReplacedDocument } from '../document-store.ts'
import { writeRows } from './contents.ts'
import { columnsFor, type Db, type Insertion } from './db.ts'
import { askForClients } from './links.ts'
import { findClaimants, findNamed } from './named-invoices.ts'
import { findDocuments } from './read-documents.ts'
import type { SharedRows } from './shared-rows.ts'

const entriesKept = 50

const documentInsertion: Insertion = {
  into: 'fatura.documents',
  columns: columnsFor('documents', 'id', 'client_id', 'misses', 'observed_stamp'),
  rest: `ON CONFLICT (id) DO UPDATE SET status = excluded.status, reference = excluded.reference, uid = excluded.uid,
    date = excluded.date, client_id = excluded.client_id, body = excluded.body, misses = 0, observed_stamp = excluded.observed_stamp,
    client_tax_id = CASE WHEN stored.client_id = excluded.client_id
      THEN coalesce(stored.client_tax_id, excluded.client_tax_id) ELSE excluded.client_tax_id END
    WHERE stored.observed_stamp <= excluded.observed_stamp`,
}

const entryInsertion: Insertion = {
  into: 'fatura.journal',
  columns: columnsFor('journal', 'happened_at', 'at'),
  rest: 'ON CONFLICT DO NOTHING',
}

const trimEntries = (db: Db) => `
  DELETE FROM fatura.journal WHERE ${db.isAmong('customer_id', '$1')} AND (customer_id, invoice_id, cause) IN (
    SELECT customer_id, invoice_id, cause FROM (
      SELECT customer_id, invoice_id, cause,
        row_number() OVER (PARTITION BY customer_id, invoice_id ORDER BY at DESC, cause) AS place
      FROM fatura.journal WHERE ${db.isAmong('customer_id', '$1')} AND ${db.isAmong('invoice_id', '$2')}) AS entries
    WHERE place > ${entriesKept})`

/**
 * Number of locks for references. Many references share a lock, because an invoice has many possible references. A transaction with
 * thousands of invoices would otherwise need too many locks. Only references that are invoice IDs have locks of their own.
 */
const sharedNames = 256

const namesOf = ({ ids = [], references = [] }: Partial<DocumentNames>) => [
  ...ids.map(id => `document ${id}`),
  ...references.map(text =>
    isInvoiceId(text) ? `reference ${text}` : `references ${hashOf(text) % sharedNames}`,
  ),
]

function hashOf(text: string): number {
  return [...text].reduce((hash, character) => (hash * 31 + (character.codePointAt(0) ?? 0)) >>> 0, 0)
}

/**
 * Locks documents and references. A reader that links invoices shares the locks of references. A writer of documents has them exclusively.
 * Otherwise a document and its invoice that are saved at the same moment could miss each other.
 */
function holdDocuments(db: Db, alone: Partial<DocumentNames>, shared: Partial<DocumentNames> = {}) {
  return db.holdNames(namesOf(alone), namesOf(shared))
}

/** Writes of documents. `saveDerivedLinks` is not among them, because each engine updates invoices in its own way. */
export function documentWrites(
  db: Db,
  { raiseObserved }: Pick<SharedRows, 'raiseObserved'>,
): Omit<DocumentWrites, 'saveDerivedLinks'> {
  return {
    async saveDocuments(documents, observedAt) {
      await holdDocuments(db, {
        ids: documents.map(({ id }) => id),
        references: documents.flatMap(({ reference, uid }) => [reference ?? [], uid ?? []].flat()),
      })
      // Keeps each document once, in its last form. A page may contain a document twice when documents are created meanwhile.
      const given = new Map(documents.map(document => [document.id, document]))
      const stored = await db.query<{ id: number; body: string; observed_stamp: number }>(
        `SELECT id, body, observed_stamp FROM fatura.documents WHERE ${db.isAmong('id', '$1')} AND body IS NOT NULL`,
        [[...given.keys()]],
      )
      const bodies = new Map(stored.map(({ id, body }) => [id, body]))
      const later = new Set(stored.filter(each => each.observed_stamp > observedAt).map(({ id }) => id))
      const taxIds = await readTaxIds(db, documents)
      const replaced: ReplacedDocument[] = []
      const rows = [...given.values()].map(document => {
        const { id, status, reference, uid = null, date, client_id } = document
        const before = bodies.get(id)
        const after = keepFields(document, before)
        const body = JSON.stringify(after)
        if (before !== body && !later.has(id))
          replaced.push({ before: before === undefined ? null : JSON.parse(before), after })
        const taxId = status === 'draft' ? null : (taxIds.get(client_id) ?? null)
        return [id, status, reference, uid, date, client_id, taxId, body, 0, observedAt]
      })
      await db.insert(documentInsertion, rows)
      const changed = replaced.filter(({ before }) => before !== null).map(({ after }) => after.id)
      if (changed.length > 0)
        await db.query(
          `UPDATE fatura.document_relations SET observed_stamp = 0 WHERE ${db.isAmong('id', '$1')}`,
          [changed],
        )
      raiseObserved(observedAt)
      return replaced
    },
    async missDocument(id, observedAt, unlessSince = observedAt) {
      await holdDocuments(db, { ids: [id] })
      await db.query(
        `INSERT INTO fatura.documents AS stored (id, misses, observed_stamp) VALUES ($1, 1, $2)
         ON CONFLICT (id) DO UPDATE SET misses = stored.misses + 1, observed_stamp = excluded.observed_stamp
         WHERE stored.observed_stamp <= excluded.observed_stamp AND (stored.misses = 0 OR stored.observed_stamp <= $3)`,
        [id, observedAt, unlessSince],
      )
      raiseObserved(observedAt)
    },
    saveClient: (id, taxId, observedAt) => writeRows(db, 'clients', [[id, taxId, observedAt]]),
    async findClient(id) {
      const select = 'SELECT tax_id, observed_stamp FROM fatura.document_clients WHERE id = $1'
      const [found = null] = await db.query<{ tax_id: string | null; observed_stamp: number }>(select, [id])
      return found
    },
    async keepClientTaxId(clientId, taxId) {
      await db.query(
        `UPDATE fatura.documents SET client_tax_id = $2
         WHERE client_id = $1 AND client_tax_id IS NULL AND status <> 'draft'`,
        [clientId, taxId ?? ''],
      )
    },
    askForClients: ids => askForClients(db, ids),
    async saveRelations(id, relations, observedAt) {
      await db.query(
        `UPDATE fatura.document_relations SET relations = coalesce($2, relations), observed_stamp = $3 WHERE id = $1`,
        [id, relations && JSON.stringify(relations), observedAt],
      )
    },
    async findDocuments(wanted) {
      // Two invoices may claim a document at the same moment. After this lock, the later transaction sees the claim of the earlier one.
      await holdDocuments(db, { ids: wanted.ids }, { references: wanted.references })
      const found = await findDocuments(db, wanted)
      // Another transaction may change a document that was found by its reference alone, or link it to another invoice. Such documents are
      // locked too, and read again after a possible change.
      const named = new Set(wanted.ids)
      const others = found.map(({ id }) => id).filter(id => !named.has(id))
      if (others.length === 0) return found
      const isDoubtful = await holdDocuments(db, { ids: others })
      return isDoubtful ? findDocuments(db, wanted) : found
    },
    findClaimants: wanted => findClaimants(db, wanted),
    findLinked: wanted => findNamed(db, wanted),
    findTombstones: ids =>
      db.query(`SELECT customer_id, id FROM fatura.tombstones WHERE ${db.isAmong('id', '$1')}`, [ids]),
    async saveEntries(entries) {
      const rows = entries.map(({ customer_id, id, cause, type, happened_at, at, outcome, detail }) => {
        return [customer_id, id, cause, type, happened_at, at, outcome, detail]
      })
      if (rows.length === 0) return
      await db.insert(entryInsertion, rows)
      const distinct = (values: readonly string[]) => [...new Set(values)]
      await db.query(trimEntries(db), [
        distinct(entries.map(({ customer_id }) => customer_id)),
        distinct(entries.map(({ id }) => id)),
      ])
    },
  }
}

/** Returns the tax IDs of the documents' clients that were read. An empty text means that the client has none. */
async function readTaxIds(db: Db, documents: readonly Document[]): Promise<Map<number | null, string>> {
  const ids = [...new Set(documents.flatMap(({ client_id }) => client_id ?? []))]
  if (ids.length === 0) return new Map()
  const read = await db.query<{ id: number; tax_id: string | null }>(
    `SELECT id, tax_id FROM fatura.document_clients WHERE ${db.isAmong('id', '$1')} AND observed_stamp > 0`,
    [ids],
  )
  return new Map(read.map(({ id, tax_id }) => [id, tax_id ?? '']))
}

/** Completes a document with the stored fields that it lacks. The order of fields is fixed, so that stored texts can be compared. */
function keepFields(document: Document, before: string | undefined): Document {
  const stored: Partial<Document> = before === undefined ? {} : JSON.parse(before)
  const { left_out, ...rest } = document
  const kept: Record<string, unknown> = { ...rest }
  for (const name of optionalFields) {
    delete kept[name]
    const value = document[name] === undefined ? stored[name] : document[name]
    if (value !== undefined) kept[name] = value
  }
  return { ...(kept as unknown as Document), ...(left_out !== undefined && { left_out }) }
}
