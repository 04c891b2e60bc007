/** Reads documents for the connector and for the operator's commands. */
import {
  type Claim,
  copyStatus,
  type Document,
  missesToBelieve,
  notInForce,
  openDocumentStatuses,
  type Relations,
  wholeFields,
} from '../../domain/document.ts'
import { isForeign } from '../../domain/document-json.ts'
import type { InvoiceKey } from '../../domain/invoice.ts'
import type { DocumentNames, KnownDocument } from '../../domain/link/known.ts'
import type {
  ClaimedDocument,
  DatedDocument,
  DocumentKey,
  DocumentReads,
  RelatedDocuments,
  RelationsKey,
} from '../document-store.ts'
import { type Db, literals, queryAny, queryColumn } from './db.ts'
import { findInvoicesOf } from './named-invoices.ts'

const isThere = `misses < ${missesToBelieve}`

const withRelations = `
  SELECT d.id AS id, d.client_tax_id, d.body, d.misses, d.observed_stamp, r.relations
  FROM fatura.documents d LEFT JOIN fatura.document_relations r ON r.id = d.id`

interface DocumentRow extends Omit<KnownDocument, 'document' | 'relations'> {
  /** Tax ID of the client when the document was issued. An empty text means that the client had none, null that it is unknown. */
  client_tax_id: string | null
  body: string | null
  relations?: string | null
}

export function documentReads(db: Db) {
  return { ...dueReads(db), ...periodReads(db) }
}

/** Finds documents, clients and invoices that the connector has to ask its sources for again. */
function dueReads(db: Db) {
  return {
    readDocuments: (which, observedBefore, after, limit) =>
      readDocuments(db, which, observedBefore, after, limit),
    readClaimed: (after, limit) => readClaimed(db, after, limit),
    readClients: (readBefore, after, limit) =>
      queryColumn(
        db,
        'SELECT id FROM fatura.document_clients WHERE observed_stamp < $1 AND id > $2 ORDER BY id LIMIT $3',
        [readBefore, after, limit],
      ),
    readDueRelations: (readBefore, limit) => readDueRelations(db, readBefore, limit),
    readCreating: (after, limit) =>
      db.query<InvoiceKey>(
        `SELECT customer_id, invoice_id AS id FROM fatura.links
         WHERE state = 'creating' AND (customer_id, invoice_id) > ($1, $2) ORDER BY customer_id, invoice_id LIMIT $3`,
        [after?.customer_id ?? '', after?.id ?? '', limit],
      ),
    async readFirstIssued() {
      const [first = null] = await queryColumn(db, 'SELECT min(issued_at) FROM fatura.invoices')
      return first as number | null
    },
  } satisfies Partial<DocumentReads>
}

/** Reads documents of a period or of a client, for reports and for checks of the links. */
function periodReads(db: Db) {
  return {
    async readOfClient(clientId, after, limit) {
      const bodies = await queryColumn<string>(
        db,
        'SELECT body FROM fatura.documents WHERE client_id = $1 AND id > $2 ORDER BY id LIMIT $3',
        [clientId, after, limit],
      )
      return bodies.map(body => JSON.parse(body) as Document)
    },
    async readInForce(after, limit, days) {
      const rows = await db.query<DocumentRow>(
        `SELECT id, client_tax_id, body, misses, observed_stamp FROM fatura.documents
         WHERE id > $1 AND status NOT IN (${literals([...notInForce, copyStatus])}) AND ${isThere}
           ${days === null ? '' : 'AND date BETWEEN $3 AND $4'} ORDER BY id LIMIT $2`,
        [after, limit, ...(days === null ? [] : [days.from, days.to])],
      )
      return withClients(db, rows)
    },
    readDated: (days, after, limit) => readDated(db, days, after, limit),
    readRelated: (month, after, limit) => readRelated(db, month, after, limit),
  } satisfies Partial<DocumentReads>
}

async function readDocuments(
  db: Db,
  ...[which, observedBefore, after, limit]: Parameters<DocumentReads['readDocuments']>
): Promise<DocumentKey[]> {
  const [index, condition, ...days] =
    which === 'open'
      ? [db.byIndex('documents_open'), `status IN (${literals(openDocumentStatuses)})`]
      : ['', "date >= $4 AND date <= $5 AND status <> 'deleted'", which.from, which.to]
  const bodies = await queryColumn<string>(
    db,
    `SELECT body FROM fatura.documents ${index}
     WHERE ${condition} AND ${isThere} AND observed_stamp < $1 AND id > $2 ORDER BY id LIMIT $3`,
    [observedBefore, after, limit, ...days],
  )
  return bodies.map(body => {
    const { id, type } = JSON.parse(body) as Document
    return { id, type }
  })
}

async function readClaimed(db: Db, after: number, limit: number): Promise<ClaimedDocument[]> {
  const found = new Set<number>()
  for (const column of ['claimed_id', 'ix_id']) {
    const sql = `SELECT DISTINCT ${column} FROM fatura.links WHERE ${column} > $1 ORDER BY ${column} LIMIT $2`
    for (const id of await queryColumn<number>(db, sql, [after, limit])) found.add(id)
  }
  const ids = [...found].sort((a, b) => a - b).slice(0, limit)
  const known = new Map((await findDocuments(db, { ids, references: [] })).map(each => [each.id, each]))
  const unseen = ids.filter(id => !known.get(id)?.document)
  const types = await readClaimedTypes(db, unseen)
  return ids.map(id => {
    const { document = null, misses = null, observed_stamp = 0 } = known.get(id) ?? {}
    return { id, type: document?.type ?? types.get(id) ?? null, misses, observed_stamp }
  })
}

/** Reads the type of each claimed document. Several invoices may claim one document, and some of these claims have no type. */
async function readClaimedTypes(db: Db, ids: readonly number[]): Promise<Map<number, DocumentKey['type']>> {
  const claims = await db.query<{ id: number; claim: string }>(
    `SELECT claimed_id AS id, claim FROM fatura.links WHERE ${db.isAmong('claimed_id', '$1')}`,
    [ids],
  )
  const types = new Map<number, DocumentKey['type']>()
  for (const { id, claim } of claims) {
    const { ix_type } = JSON.parse(claim) as Claim
    if (ix_type !== null) types.set(id, ix_type)
  }
  return types
}

async function readDueRelations(db: Db, readBefore: number, limit: number): Promise<RelationsKey[]> {
  const rows = await db.query<{ id: number; relations: string | null; body: string }>(
    `SELECT r.id, r.relations, d.body FROM fatura.document_relations r
     JOIN fatura.documents d ON d.id = r.id
     WHERE r.observed_stamp < $1 AND d.body IS NOT NULL AND d.status NOT IN ('draft', 'deleted') AND d.${isThere}
     ORDER BY r.observed_stamp, r.id DESC LIMIT $2`,
    [readBefore, limit],
  )
  const tied = await findInvoicesOf(db, idsOf(rows))
  return rows.map(({ id, relations, body }) => {
    const document = JSON.parse(body) as Document
    const lacksField = wholeFields.some(name => document[name] === undefined)
    const lacksRate =
      document.multicurrency === undefined &&
      (tied.get(id) ?? []).some(({ invoice }) => isForeign(document, invoice))
    const hasQr = relations !== null && JSON.parse(relations).has_qr
    return { id, type: document.type, hasQr, isPartial: lacksField || lacksRate }
  })
}

async function readDated(
  db: Db,
  ...[{ from, to }, after, limit]: Parameters<DocumentReads['readDated']>
): Promise<DatedDocument[]> {
  const rows = await db.query<DocumentRow>(
    `${withRelations}
     WHERE d.date <= $1 AND (d.date, d.id) > ($2, $3) AND d.body IS NOT NULL ORDER BY d.date, d.id LIMIT $4`,
    [to, after?.date ?? from, after?.id ?? 0, limit],
  )
  const tied = await findInvoicesOf(db, idsOf(rows))
  return (await withClients(db, rows)).map(({ id, document, misses, client_tax_id, relations }) => ({
    document: document as Document,
    isGone: misses >= missesToBelieve,
    relations: relations ?? null,
    client_tax_id,
    invoices: (tied.get(id) ?? []).map(({ invoice }) => invoice),
  }))
}

/** The text condition on `relations` finds candidates. The caller checks the date of each related document. */
async function readRelated(db: Db, month: string, after: number, limit: number): Promise<RelatedDocuments[]> {
  const rows = await db.query<DocumentRow>(
    `SELECT r.id, d.client_tax_id, d.body, d.misses, d.observed_stamp, r.relations FROM fatura.document_relations r
     JOIN fatura.documents d ON d.id = r.id
     WHERE r.id > $1 AND r.relations LIKE $2 AND d.body IS NOT NULL ORDER BY r.id LIMIT $3`,
    [after, `%"date":"${month}-%`, limit],
  )
  const tied = await findInvoicesOf(db, idsOf(rows))
  return (await withClients(db, rows)).map(({ id, document, client_tax_id, relations }) => ({
    document: document as Document,
    client_tax_id,
    relations: relations as Relations,
    invoices: tied.get(id) ?? [],
  }))
}

export async function findDocuments(db: Db, { ids, references }: DocumentNames): Promise<KnownDocument[]> {
  const lists = [['d.id', ids] as const, ['d.reference', references] as const, ['d.uid', references] as const]
  return withClients(db, await queryAny<DocumentRow>(db, withRelations, lists, ' ORDER BY id'))
}

/** Adds the clients' tax IDs to documents. Clients are read separately, because Citus stores them on other nodes than documents. */
async function withClients(db: Db, rows: readonly DocumentRow[]): Promise<KnownDocument[]> {
  const found = rows.map(row => ({ row, document: readBody(row.body) }))
  const ids = [...new Set(found.flatMap(({ document }) => document?.client_id ?? []))]
  const select = 'SELECT id, tax_id FROM fatura.document_clients'
  const clients = await queryAny<{ id: number; tax_id: string | null }>(db, select, [['id', ids]])
  const taxIds = new Map(clients.map(({ id, tax_id }) => [id, tax_id]))
  return found.map(({ row: { id, misses, observed_stamp, relations = null, client_tax_id }, document }) => ({
    ...{ id, document, misses, observed_stamp },
    relations: relations === null ? null : JSON.parse(relations),
    client_tax_id: taxIdOf(document, client_tax_id, taxIds.get(document?.client_id ?? -1) ?? null),
  }))
}

const idsOf = (rows: readonly { id: number }[]) => rows.map(({ id }) => id)

export function readBody(body: string | null): Document | null {
  return body === null ? null : JSON.parse(body)
}

/**
 * Returns the tax ID on the document. If the document has none recorded, returns the client's tax ID when the document was issued, or else
 * the client's current tax ID.
 */
export function taxIdOf<T>(
  document: Document | null,
  whenIssued: string | null,
  ofToday: T,
): string | null | T {
  if (document?.tax_id !== undefined) return document.tax_id
  return whenIssued === null ? ofToday : whenIssued || null
}
