/** What the connector asks of InvoiceXpress: documents by pages, one document, and whom it is made out to. */
import Type from 'typebox'
import { Compile } from 'typebox/compile'
import { type Document, type DocumentType, documentTypes } from '../document.ts'
import { type DocumentPage, type DocumentQuery, type DocumentSource, SourceError } from '../sources.ts'
import { createPacedCall, type Pace } from '../upstream/paced-calls.ts'
import { type Answer, createClient, type InvoiceXpressOptions, isInvoiceXpressOwn } from './client.ts'
import { mapClient, mapDocument, writeDate } from './map-document.ts'
import { invoiceXpressFailures, readAs, readObject, readWrapped, unfit } from './read-answer.ts'

/** 480 a minute of the 780 that an account may: the rest is for downloads, and for whatever else uses the account. */
const ownPace: Pace = { perSecond: 8, attempts: 6, patience: 60_000 }
/** A sandbox has limits only when it is told to. */
const sandboxPace: Pace = { perSecond: 10_000, attempts: 6, patience: 60_000 }

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

const count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const list = Compile(
  Type.Object({
    invoices: Type.Array(Type.Unknown()),
    pagination: Type.Object({ current_page: count, total_pages: count, total_entries: count }),
  }),
)

export function createDocumentSource(
  options: InvoiceXpressOptions,
  pace: Pace = paceFor(options.base),
): DocumentSource {
  const ask = createClient(options)
  const call = createPacedCall(pace, invoiceXpressFailures)

  /** What does not fit is asked for again, like what failed: so it is read within the call. */
  async function fetchRecord<T extends { id: number }>(
    path: string,
    id: number,
    map: (payload: unknown) => T | null,
  ): Promise<T | null> {
    return unlessMissing(
      call(async () => {
        const record = map(readWrapped(await ask(path)))
        if (record !== null && record.id !== id)
          throw new SourceError('failed', 'InvoiceXpress sent another record than the one asked for')
        return record
      }),
    )
  }

  return {
    listDocuments: (query, page) =>
      call(async () => readPage(await ask('/invoices.json', writeQuery(query, page)), page)),
    async fetchDocument(id, type) {
      for (const each of type === null ? documentTypes : [type]) {
        const document = await fetchRecord(`/${paths[each]}/${id}.json`, id, mapDocument)
        if (document !== null) return document
      }
      return null
    },
    fetchClient: id => fetchRecord(`/clients/${id}.json`, id, mapClient),
  }
}

function writeQuery(
  { from, to, statuses = listStatuses }: DocumentQuery,
  page: number,
): [name: string, value: string][] {
  return [
    ...documentTypes.map((type): [string, string] => ['type[]', type]),
    ...statuses.map((status): [string, string] => ['status[]', status]),
    ['non_archived', 'true'],
    ...(from === undefined ? [] : [['date[from]', writeDate(from)] as [string, string]]),
    ...(to === undefined ? [] : [['date[to]', writeDate(to)] as [string, string]]),
    ['page', String(page)],
    ['per_page', String(pageSize)],
  ]
}

/** The page that was asked for and no other: else one might be read for ever, or in another's place. */
function readPage(answer: Answer, page: number): DocumentPage {
  const { invoices, pagination } = readAs(list, readObject(answer), 'a list')
  const { current_page, total_pages, total_entries } = pagination
  // A list that grew shorter since its last page was read ends before this one.
  const isBeyond = total_entries === 0 || page > total_pages
  const fits =
    current_page === page && total_pages <= Math.max(1, total_entries) && isBeyond === (invoices.length === 0)
  if (!fits) throw unfit('a page')
  return { ...readDocuments(invoices), pages: total_pages, total: total_entries }
}

/** One document that does not fit is left out, so that it keeps no other back; when none fits, the list does not. */
function readDocuments(payloads: readonly unknown[]): { documents: Document[]; refused: number } {
  const documents: Document[] = []
  let refused = 0
  for (const payload of payloads) {
    try {
      const document = mapDocument(payload)
      if (document !== null) documents.push(document)
    } catch (error) {
      refused++
      if (refused === payloads.length) throw error
    }
  }
  return { documents, refused }
}

/** Null when InvoiceXpress does not know what was asked for. */
async function unlessMissing<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof SourceError && error.failure === 'missing') return null
    throw error
  }
}
