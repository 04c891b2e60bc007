/** InvoiceXpress as the connector uses it: lists of documents, single documents, and clients. */
import { type Document, type DocumentType, documentTypes } from '../../domain/document.ts'
import { createPacedCall, type Pace, type PacedCall } from '../calls/paced-calls.ts'
import {
  type DocumentPage,
  type DocumentQuery,
  type DocumentSource,
  type Misfit,
  SourceError,
  unlessMissing,
} from '../source.ts'
import { type Answer, createClient, type InvoiceXpressOptions, isInvoiceXpressOwn } from './client.ts'
import { mapClient, mapDocument, mapRelated, readId, writeDate } from './map-document.ts'
import { invoiceXpressFailures, readPage, readQrUrl, readWrapped, unfit } from './read-answer.ts'
import { invoiceXpressIdentity } from './source-identity.ts'

/**
 * Limits the connector to 480 of the 780 requests per minute that InvoiceXpress allows an account. The rest is for downloads and other
 * programs. A sandbox has no limits by default.
 */
export function paceFor(base: string): Pace {
  return { perSecond: isInvoiceXpressOwn(base) ? 8 : 10_000, attempts: 6, patienceMs: 60_000 }
}

const pageSize = 50

/** All statuses of the list's filter. A list without the filter leaves some documents out. */
const listStatuses = ['draft', 'sent', 'settled', 'canceled', 'second_copy', 'deleted']

/** The path of each document type in the addresses of the API and of InvoiceXpress' web pages. */
export const documentPaths: Record<DocumentType, string> = {
  Invoice: 'invoices',
  InvoiceReceipt: 'invoice_receipts',
  SimplifiedInvoice: 'simplified_invoices',
  VatMossInvoice: 'vat_moss_invoices',
  CashInvoice: 'cash_invoices',
}

export function createDocumentSource(options: InvoiceXpressOptions, pace: Pace = paceFor(options.base)) {
  const call = createPacedCall({ ...pace, slowlyPerSecond: pace.perSecond / 2 }, invoiceXpressFailures)
  const ask = createClient(options, call.refusal)
  return {
    ...createRequests(ask, call),
    // Sends requests at half the rate, for work that can wait.
    atHalfPace: createRequests(ask, request => call(request, { urgency: 'slowly' })),
  }
}

type Ask = ReturnType<typeof createClient>

function createRequests(ask: Ask, call: PacedCall): DocumentSource {
  /** Maps the answer inside the paced call, so that an answer that fails the checks is requested again. */
  async function fetchRecord<T extends { id: number }>(
    path: string,
    id: number,
    map: (answer: Answer) => T | null,
  ): Promise<T | null> {
    return unlessMissing(
      call(async () => {
        const record = map(await ask(path))
        if (record !== null && record.id !== id)
          throw new SourceError('failed', 'InvoiceXpress sent another record than the requested one', {
            scope: 'record',
          })
        return record
      }),
    )
  }

  return {
    ...invoiceXpressIdentity,
    listDocuments: (query, page) => listDocuments(ask, call, query, page),
    async fetchDocument(id, type) {
      for (const each of type === null ? documentTypes : [type]) {
        const path = documentPaths[each]
        const map = (answer: Answer) => {
          const [key, record] = readWrapped(answer)
          return mapDocument(key === 'invoice' || path === `${key}s` ? withType(record, each) : record, true)
        }
        const document = await fetchRecord(`/${path}/${id}.json`, id, map)
        if (document !== null) return document
      }
      return null
    },
    fetchRelations: (id, hasQr) => fetchRelations(ask, call, id, hasQr),
    fetchClient: id => fetchRecord(`/clients/${id}.json`, id, answer => mapClient(readWrapped(answer)[1])),
  }
}

async function listDocuments(
  ask: Ask,
  call: PacedCall,
  query: DocumentQuery,
  page: number,
): Promise<DocumentPage> {
  let unreadable: { page: DocumentPage; error: SourceError } | undefined
  try {
    return await call(async () => {
      const { records, pages, total } = readPage(await ask('/invoices.json', writeQuery(query, page)), page)
      const read = { ...readDocuments(records), pages, total }
      if (records.length === 0 || read.misfits.length < records.length) return read
      // When all documents of a page fail the checks, the answer itself may be
      // wrong. The page is requested again, and accepted after the last attempt.
      unreadable = { page: read, error: unfit('a page') }
      throw unreadable.error
    })
  } catch (error) {
    if (unreadable !== undefined && error === unreadable.error) return unreadable.page
    throw error
  }
}

async function fetchRelations(ask: Ask, call: PacedCall, id: number, hasQr: boolean) {
  const documents = await unlessMissing(
    call(async () => {
      const [, records] = readWrapped(await ask(`/document/${id}/related_documents.json`))
      if (!Array.isArray(records)) throw unfit('a list')
      return records.map(mapRelated)
    }),
  )
  if (documents === null) return null
  // Only the existence of the QR code is stored. Its address holds a secret, and each download requests the address again.
  const qr =
    hasQr || (await unlessMissing(call(async () => readQrUrl(await ask(`/api/qr_codes/${id}.json`)))))
  return { has_qr: qr !== null, documents }
}

/** Adds the type of the requested address to a document that names no type. */
function withType(record: unknown, type: DocumentType): unknown {
  return typeof record === 'object' && record !== null ? { type, ...record } : record
}

export function writeQuery(
  { from, to, statuses = listStatuses, isArchived = false }: DocumentQuery,
  page: number,
  perPage = pageSize,
) {
  const query = new URLSearchParams()
  for (const type of documentTypes) query.append('type[]', type)
  for (const status of statuses) query.append('status[]', status)
  // Sends only one of `archived` and `non_archived`, because InvoiceXpress does not document their combination.
  query.append(isArchived ? 'archived' : 'non_archived', 'true')
  if (from !== undefined) query.append('date[from]', writeDate(from))
  if (to !== undefined) query.append('date[to]', writeDate(to))
  query.append('page', String(page))
  query.append('per_page', String(perPage))
  return query
}

function readDocuments(records: readonly unknown[]): { documents: Document[]; misfits: Misfit[] } {
  const documents: Document[] = []
  const misfits: Misfit[] = []
  for (const record of records) {
    try {
      const document = mapDocument(record)
      if (document !== null) documents.push(document)
    } catch (error) {
      misfits.push({ id: readId(record), reason: (error as SourceError).message })
    }
  }
  return { documents, misfits }
}
