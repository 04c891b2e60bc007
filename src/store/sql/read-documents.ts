/** Reads of documents, links and the journal, for the connector and the operator's commands. */
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
  JournalEntry,
  LinkedInvoice,
  RelatedDocuments,
  RelationsKey,
} from '../document-store.ts'
import { type Db, literals, queryAny, queryColumn } from './db.ts'
import { findClaimants, findInvoicesOf } from './named-invoices.ts'

const isThere = `misses < ${missesToBelieve}`

const withRelations = `
  SELECT d.id AS id, d.client_tax_id, d.body, d.misses, d.observed_at, r.relations
  FROM fatura.documents d LEFT JOIN fatura.document_relations r ON r.id = d.id`

interface DocumentRow extends Omit<KnownDocument, 'document' | 'relations'> {
  /** As it was when the document was issued: '' for none, null when that was not seen. */
  client_tax_id: string | null
  body: string | null
  relations?: string | null
}

interface LinkedRow extends Omit<LinkedInvoice, 'claim' | 'document' | 'client_tax_id' | 'payment'> {
  claim: string | null
  payment: string
  document_id: number | null
  body: string | null
  misses: number
  seen_at: number
  issued_to: string | null
  client_read_at: number | null
  tax_id: string | null
}

/** Citus joins only what lies together: each table's rows are found alone, then joined. `page` chooses the invoices. */
const linked = (page: string) => `
  WITH page AS MATERIALIZED (
    SELECT i.customer_id, i.id, i.summary, i.payment, i.observed_at, l.claim, coalesce(l.ix_id, l.claimed_id) AS document_id
    FROM fatura.invoices i LEFT JOIN fatura.links l ON l.customer_id = i.customer_id AND l.invoice_id = i.id
    ${page}),
  tied AS MATERIALIZED (
    SELECT id, body, misses, observed_at, client_id, client_tax_id FROM fatura.documents
    WHERE id IN (SELECT document_id FROM page)),
  clients AS MATERIALIZED (
    SELECT id, observed_at, tax_id FROM fatura.document_clients WHERE id IN (SELECT client_id FROM tied))
  SELECT p.customer_id, p.id, p.summary, p.payment, p.observed_at, p.claim, d.id AS document_id, d.body, d.misses,
    d.observed_at AS seen_at, d.client_tax_id AS issued_to, c.observed_at AS client_read_at, c.tax_id
  FROM page p LEFT JOIN tied d ON d.id = p.document_id LEFT JOIN clients c ON c.id = d.client_id
  ORDER BY p.customer_id, p.id`

export function documentReads(db: Db): DocumentReads {
  return { ...dueReads(db), ...tiedReads(db), ...periodReads(db) }
}

/** What the connector reads again at the sources. */
function dueReads(db: Db) {
  return {
    readDocuments: (which, observedBefore, after, limit) =>
      readDocuments(db, which, observedBefore, after, limit),
    readClaimed: (after, limit) => readClaimed(db, after, limit),
    readClients: (readBefore, after, limit) =>
      queryColumn(
        db,
        'SELECT id FROM fatura.document_clients WHERE observed_at < $1 AND id > $2 ORDER BY id LIMIT $3',
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

/** Invoices, their documents, and what ties them. */
function tiedReads(db: Db) {
  return {
    async readLinked(after, limit, customerId) {
      const page =
        customerId === null
          ? 'WHERE (i.customer_id, i.id) > ($1, $2) ORDER BY i.customer_id, i.id LIMIT $3'
          : 'WHERE i.customer_id = $1 AND i.id > $2 ORDER BY i.id LIMIT $3'
      const values = [customerId ?? after?.customer_id ?? '', after?.id ?? '', limit]
      return (await db.query<LinkedRow>(linked(page), values)).map(readLinked)
    },
    async findLinkedById(invoiceId) {
      return (await db.query<LinkedRow>(linked('WHERE i.id = $1'), [invoiceId])).map(readLinked)
    },
    findDocuments: wanted => findDocuments(db, wanted),
    findClaimants: wanted => findClaimants(db, wanted),
    async findTied({ documents, invoices }) {
      const among = (column: string) => `SELECT ${column} FROM fatura.links WHERE ${db.isAmong(column, '$1')}`
      return {
        documents: await queryColumn(db, `${among('claimed_id')} UNION ${among('ix_id')}`, [documents]),
        invoices: await queryColumn(db, among('invoice_id'), [invoices]),
      }
    },
    readJournal: ({ customer_id, id }) =>
      db.query<JournalEntry>(
        `SELECT customer_id, invoice_id AS id, cause, type, happened_at, at, outcome, detail FROM fatura.journal
         WHERE customer_id = $1 AND invoice_id = $2 ORDER BY at DESC, cause`,
        [customer_id, id],
      ),
    async findTombstone(invoiceId) {
      const [row] = await db.query<InvoiceKey & { observed_at: number }>(
        'SELECT customer_id, id, observed_at FROM fatura.tombstones WHERE id = $1',
        [invoiceId],
      )
      return row ?? null
    },
  } satisfies Partial<DocumentReads>
}

/** Documents of a span of days or of a client, for reports and the convention. */
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
        `SELECT id, client_tax_id, body, misses, observed_at FROM fatura.documents
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
     WHERE ${condition} AND ${isThere} AND observed_at < $1 AND id > $2 ORDER BY id LIMIT $3`,
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
    const { document = null, misses = null, observed_at = 0 } = known.get(id) ?? {}
    return { id, type: document?.type ?? types.get(id) ?? null, misses, observed_at }
  })
}

/** Several invoices may claim one document. Not every claim knows its type. */
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
     WHERE r.observed_at < $1 AND d.body IS NOT NULL AND d.status NOT IN ('draft', 'deleted') AND d.${isThere}
     ORDER BY r.observed_at, r.id DESC LIMIT $2`,
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

/** The relations' text narrows the documents down. The caller looks at each day. */
async function readRelated(db: Db, month: string, after: number, limit: number): Promise<RelatedDocuments[]> {
  const rows = await db.query<DocumentRow>(
    `SELECT r.id, d.client_tax_id, d.body, d.misses, d.observed_at, r.relations FROM fatura.document_relations r
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

/** Clients do not lie with documents on Citus. */
async function withClients(db: Db, rows: readonly DocumentRow[]): Promise<KnownDocument[]> {
  const found = rows.map(row => ({ row, document: readBody(row.body) }))
  const ids = [...new Set(found.flatMap(({ document }) => document?.client_id ?? []))]
  const select = 'SELECT id, tax_id FROM fatura.document_clients'
  const clients = await queryAny<{ id: number; tax_id: string | null }>(db, select, [['id', ids]])
  const taxIds = new Map(clients.map(({ id, tax_id }) => [id, tax_id]))
  return found.map(({ row: { id, misses, observed_at, relations = null, client_tax_id }, document }) => ({
    ...{ id, document, misses, observed_at },
    relations: relations === null ? null : JSON.parse(relations),
    client_tax_id: taxIdOf(document, client_tax_id, taxIds.get(document?.client_id ?? -1) ?? null),
  }))
}

const idsOf = (rows: readonly { id: number }[]) => rows.map(({ id }) => id)

function readLinked(row: LinkedRow): LinkedInvoice {
  const { claim, payment, document_id: id, body, misses, seen_at, ...rest } = row
  const { issued_to, client_read_at, tax_id, ...invoice } = rest
  const document = readBody(body)
  // A client that is only known to be wanted has no moment yet.
  const client_tax_id = taxIdOf(document, issued_to, client_read_at ? tax_id : undefined)
  const known = { document, misses, observed_at: seen_at, client_tax_id: client_tax_id ?? null }
  return {
    ...invoice,
    claim: claim === null ? null : JSON.parse(claim),
    payment: JSON.parse(payment),
    document: id === null ? null : { id, ...known, relations: null },
    client_tax_id,
  }
}

function readBody(body: string | null): Document | null {
  return body === null ? null : JSON.parse(body)
}

/** The document's own where it has one, else its client's when it was issued, else its client's of today. */
function taxIdOf<T>(document: Document | null, whenIssued: string | null, ofToday: T): string | null | T {
  if (document?.tax_id !== undefined) return document.tax_id
  return whenIssued === null ? ofToday : whenIssued || null
}
