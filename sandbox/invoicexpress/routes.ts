/** Every address of the local InvoiceXpress and its answer. */
import type { DocumentRouteName } from '../faults.ts'
import type { ServedRoute } from '../serving.ts'
import { type Answer, jsonAnswer, pdfAnswer, SandboxError } from '../spoil.ts'
import type { DocumentAccount } from './account.ts'
import { notFound } from './errors.ts'
import { listDocuments } from './list.ts'
import { type IxClient, type IxDocument, ixTypes, printedOf } from './objects.ts'
import type { Pdfs } from './pdfs.ts'
import { createQrImage } from './qr-image.ts'
import type { Safts } from './saft.ts'

export interface IxWorld {
  documents: DocumentAccount
  pdfs: Pdfs
  safts: Safts
  /** The beginning of the addresses of PDFs. */
  address: string
  /** How long a change takes to be seen in lists. */
  lagMs: number
}

export interface IxRoute extends ServedRoute {
  name: DocumentRouteName
  /** `parts` are the groups of the path. */
  answer(world: IxWorld, search: URLSearchParams, parts: string[]): Answer
}

const typePaths = Object.values(ixTypes).map(({ path }) => path)

export const ixRoutes: readonly IxRoute[] = [
  {
    name: 'ix_list',
    path: /^\/invoices\.json$/,
    answer({ documents, lagMs }, search) {
      const { invoices, pagination } = listDocuments(documents, search, lagMs)
      return jsonAnswer(200, { invoices: invoices.map(renderListed), pagination })
    },
  },
  {
    name: 'ix_document',
    path: new RegExp(`^/(${typePaths.join('|')})/(\\d{1,15})\\.json$`),
    answer({ documents }, _search, [path, id]) {
      const document = documents.documents.get(Number(id))
      if (document === undefined || ixTypes[document.type].path !== path) throw notFound('document')
      return jsonAnswer(200, { [ixTypes[document.type].key]: renderDocument(document) })
    },
  },
  {
    name: 'ix_client',
    path: /^\/clients\/(\d{1,15})\.json$/,
    answer({ documents }, _search, [id]) {
      const client = documents.clients.get(Number(id))
      if (client === undefined) throw notFound('client')
      return jsonAnswer(200, { client: writeClientOddly(client) })
    },
  },
  {
    name: 'ix_pdf',
    path: /^\/api\/pdf\/(\d{1,15})\.json$/,
    answer({ pdfs, address }, _search, [id]) {
      const path = pdfs.ask(Number(id))
      return path === null
        ? jsonAnswer(202, {})
        : jsonAnswer(200, { output: { pdfUrl: `${address}${path}` } })
    },
  },
  {
    name: 'ix_pdf_file',
    path: /^\/pdf\/(\d{1,15})\/(\w+)\.pdf$/,
    isOpen: true,
    answer: ({ pdfs }, _search, [id, secret = '']) => pdfAnswer(pdfs.read(Number(id), secret)),
  },
  {
    name: 'ix_related',
    path: /^\/document\/(\d{1,15})\/related_documents\.json$/,
    answer({ documents }, _search, [id]) {
      if (!documents.documents.has(Number(id))) throw notFound('document')
      return jsonAnswer(200, { documents: documents.relatedTo(Number(id)).map(renderListed) })
    },
  },
  {
    name: 'ix_qr',
    path: /^\/api\/qr_codes\/(\d{1,15})\.json$/,
    answer({ documents, pdfs, address }, _search, [id]) {
      const document = documents.documents.get(Number(id))
      if (document === undefined || document.status === 'deleted') throw notFound('document')
      if (document.sequence_number === null) throw new SandboxError(422, 'A draft has no QR code.')
      return jsonAnswer(200, { qr_code: { url: `${address}/qr/${id}/${pdfs.addSecret(Number(id))}.png` } })
    },
  },
  {
    name: 'ix_qr_file',
    path: /^\/qr\/(\d{1,15})\/(\w+)\.png$/,
    isOpen: true,
    answer({ pdfs }, _search, [id, secret = '']) {
      const document = pdfs.open(Number(id), secret)
      return { status: 200, type: 'image/png', body: createQrImage(String(printedOf(document).atcud)) }
    },
  },
  {
    name: 'ix_saft',
    path: /^\/api\/export_saft\.json$/,
    answer({ safts, address }, search) {
      const path = safts.ask(search.get('year') ?? '', search.get('month') ?? '')
      return path === null ? jsonAnswer(202, {}) : jsonAnswer(200, { url: `${address}${path}` })
    },
  },
  {
    name: 'ix_saft_file',
    path: /^\/saft\/(\d{4}-\d{2})\/(\w+)\.xml$/,
    isOpen: true,
    answer: ({ safts }, _search, [month = '', secret = '']) => ({
      status: 200,
      type: 'application/xml',
      body: safts.read(month, secret),
    }),
  },
]

/** Now and then without some fields, which the document by itself has. */
function renderListed(document: IxDocument): object {
  const { tax_exemption, ...rest } = document
  const { inverted_sequence_number, atcud } = printedOf(document)
  return document.id % 7 === 0
    ? writeOddly({ ...rest, inverted_sequence_number })
    : writeOddly({ ...document, inverted_sequence_number, atcud })
}

/** A single document has numbers where a list has text. */
function renderDocument(document: IxDocument): object {
  const items = document.items.map(item => ({
    ...item,
    quantity: Number(item.quantity),
    unit_price: Number(item.unit_price),
  }))
  return writeOddly({ ...document, ...printedOf(document), items })
}

/** As seen at the real one: now and then text for numbers, and numbers for booleans. */
function writeOddly<
  T extends Omit<IxDocument, 'items' | 'tax_exemption'> & { items: { tax: { value: number } }[] },
>(document: T): object {
  const { id, archived, total, client } = document
  const isOdd = id % 3 === 0
  if (!isOdd) return document
  const items = document.items.map(item => ({
    ...item,
    tax: { ...item.tax, value: writeRate(item.tax.value) },
  }))
  return {
    ...document,
    archived: archived ? 1 : 0,
    total: String(total),
    client: { ...client, id: String(client.id) },
    items,
  }
}

function writeRate(value: number): string {
  return Number.isInteger(value) ? value.toFixed(1) : String(value)
}

function writeClientOddly(client: IxClient): object {
  if (client.id % 2 === 0) return client
  const fiscal_id = /^[1-9]\d*$/.test(client.fiscal_id ?? '') ? Number(client.fiscal_id) : client.fiscal_id
  return { ...client, id: String(client.id), fiscal_id }
}
