/** What the connector asks of InvoiceXpress: documents by pages, one document, and whom it is made out to. */
import { type Document, type DocumentType, documentTypes } from '../document.ts'
import {
  type DocumentPage,
  type DocumentQuery,
  type DocumentSource,
  type Misfit,
  SourceError,
  unlessMissing,
} from '../sources.ts'
import { createPacedCall, type Pace, type PacedCall } from '../upstream/paced-calls.ts'
import { createThrottle } from '../upstream/throttle.ts'
import { type Answer, createClient, type InvoiceXpressOptions, isInvoiceXpressOwn } from './client.ts'
import { mapClient, mapDocument, readId, writeDate } from './map-document.ts'
import { invoiceXpressFailures, readWrapped, unfit } from './read-answer.ts'
import { readPage } from './read-page.ts'
import { invoiceXpressIdentity } from './source-identity.ts'

/** 480 a minute of the 780 that an account may: the rest is for downloads, and for whatever else uses the account. */
const ownPace: Pace = { perSecond: 8, attempts: 6, patienceMs: 60_000 }
/** A sandbox has limits only when it is told to. */
const sandboxPace: Pace = { perSecond: 10_000, attempts: 6, patienceMs: 60_000 }

export function paceFor(base: string): Pace {
  return isInvoiceXpressOwn(base) ? ownPace : sandboxPace
}

const pageSize = 50

/** Those that a list can be asked for; without any it would leave some out. */
const listStatuses = ['draft', 'sent', 'settled', 'canceled', 'second_copy', 'deleted']

const paths: Record<DocumentType, string> = {
  Invoice: 'invoices',
  InvoiceReceipt: 'invoice_receipts',
  SimplifiedInvoice: 'simplified_invoices',
  VatMossInvoice: 'vat_moss_invoices',
  CashInvoice: 'cash_invoices',
}

export interface PacedDocumentSource extends DocumentSource {
  /** The same, for what has time: it takes no more than half of the pace, and leaves the rest to the others. */
  atHalfPace: DocumentSource
}

export function createDocumentSource(
  options: InvoiceXpressOptions,
  pace: Pace = paceFor(options.base),
): PacedDocumentSource {
  const call = createPacedCall(pace, invoiceXpressFailures)
  const ask = createClient(options, call.refusal)
  // Each call waits for its turn among those that have time, and then among all.
  const turns = createThrottle({ perSecond: pace.perSecond / 2 })
  return {
    ...createQuestions(ask, call),
    atHalfPace: createQuestions(ask, async question => {
      await turns.take('', 'soon')
      try {
        return await call(question)
      } finally {
        turns.done()
      }
    }),
  }
}

function createQuestions(ask: ReturnType<typeof createClient>, call: PacedCall): DocumentSource {
  /** What does not fit is asked for again, like what failed: so it is read within the call. */
  async function fetchRecord<T extends { id: number }>(
    path: string,
    id: number,
    map: (answer: Answer) => T | null,
  ): Promise<T | null> {
    return unlessMissing(
      call(async () => {
        const record = map(await ask(path))
        if (record !== null && record.id !== id)
          throw new SourceError('failed', 'InvoiceXpress sent another record than the one asked for', {
            scope: 'record',
          })
        return record
      }),
    )
  }

  return {
    ...invoiceXpressIdentity,
    async listDocuments(query, page) {
      let unreadable: { page: DocumentPage; error: SourceError } | undefined
      try {
        return await call(async () => {
          const { records, pages, total } = readPage(
            await ask('/invoices.json', writeQuery(query, page)),
            page,
          )
          const read = { ...readDocuments(records), pages, total }
          if (records.length === 0 || read.misfits.length < records.length) return read
          // It may be the answer and not the documents: so it is asked for again, and believed at last.
          unreadable = { page: read, error: unfit('a page') }
          throw unreadable.error
        })
      } catch (error) {
        if (unreadable !== undefined && error === unreadable.error) return unreadable.page
        throw error
      }
    },
    async fetchDocument(id, type) {
      for (const each of type === null ? documentTypes : [type]) {
        const path = paths[each]
        const map = (answer: Answer) => {
          const [key, record] = readWrapped(answer)
          return mapDocument(key === 'invoice' || path === `${key}s` ? withType(record, each) : record)
        }
        const document = await fetchRecord(`/${path}/${id}.json`, id, map)
        if (document !== null) return document
      }
      return null
    },
    fetchClient: id => fetchRecord(`/clients/${id}.json`, id, answer => mapClient(readWrapped(answer)[1])),
  }
}

/** A document that does not say its type is of the type that was asked for. */
function withType(record: unknown, type: DocumentType): unknown {
  return typeof record === 'object' && record !== null ? { type, ...record } : record
}

function writeQuery(
  { from, to, statuses = listStatuses, isArchived = false }: DocumentQuery,
  page: number,
): [name: string, value: string][] {
  return [
    ...documentTypes.map((type): [string, string] => ['type[]', type]),
    ...statuses.map((status): [string, string] => ['status[]', status]),
    // One of the two, and not both: what they mean together is nowhere told.
    [isArchived ? 'archived' : 'non_archived', 'true'],
    ...(from === undefined ? [] : [['date[from]', writeDate(from)] as [string, string]]),
    ...(to === undefined ? [] : [['date[to]', writeDate(to)] as [string, string]]),
    ['page', String(page)],
    ['per_page', String(pageSize)],
  ]
}

/** One document that does not fit keeps no other back. */
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
