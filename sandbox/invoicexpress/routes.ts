/** Routes of the local InvoiceXpress and their answers. */

import { hash as digest } from 'node:crypto'
import { decimalsOf } from '../../src/domain/money.ts'
import type { DocumentRouteName } from '../faults.ts'
import { hashOf } from '../saft-file.ts'
import type { ServedRoute } from '../serving.ts'
import { type Answer, jsonAnswer, pdfAnswer, SandboxError } from '../spoil.ts'
import type { DocumentAccount } from './account.ts'
import { notFound } from './errors.ts'
import { listDocuments } from './list.ts'
import {
  currencyOf,
  type IxClient,
  type IxDocument,
  type IxMulticurrency,
  ixTypes,
  printedOf,
} from './objects.ts'
import type { Pdfs } from './pdfs.ts'
import { createQrImage } from './qr-image.ts'
import type { Safts } from './saft.ts'

export interface IxWorld {
  documents: DocumentAccount
  pdfs: Pdfs
  safts: Safts
  /** Base address of the PDFs. */
  address: string
  /** Time in milliseconds until lists show a change. */
  lagMs: number
}

export interface IxRoute extends ServedRoute {
  name: DocumentRouteName
  /** `parts` are the texts that the groups of the route's `path` match. */
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

/** Renders a document in a list. As at InvoiceXpress, some documents lack fields there that a single document has. */
function renderListed(document: IxDocument): object {
  const { tax_exemption, atcud, multicurrency, ...rest } = renderWhole(document)
  if (document.id % 7 === 0) return writeOddly(document, rest)
  return writeOddly(document, {
    ...rest,
    ...{ tax_exemption, atcud },
    ...(multicurrency !== undefined && document.id % 25 !== 0 && { multicurrency }),
  })
}

/** Renders a single document. It has numbers where a list has text, and some documents include the client's tax ID. */
function renderDocument(document: IxDocument): object {
  const whole = renderWhole(document)
  const { fiscal_id } = document.client
  return writeOddly(document, {
    ...whole,
    client: document.id % 4 === 0 ? { ...whole.client, fiscal_id } : whole.client,
    items: whole.items.map(item => ({
      ...item,
      quantity: Number(item.quantity),
      unit_price: Number(item.unit_price),
    })),
  })
}

/** Renders all fields of a document, in their most frequent form. */
function renderWhole(document: IxDocument) {
  const { client, multicurrency, ...rest } = document
  const { id, type, status } = document
  const { inverted_sequence_number, atcud } = printedOf(document)
  const isDraft = status === 'draft'
  const hash = isDraft ? null : hashOf(`${type} ${inverted_sequence_number}`)
  // A draft has the word for "draft" instead of a number, in the account's language.
  const word = id % 2 === 0 ? 'rascunho' : 'draft'
  return {
    ...rest,
    sequence_number: document.sequence_number ?? word,
    inverted_sequence_number: inverted_sequence_number ?? (id % 3 === 0 ? null : word),
    atcud,
    sequence_id: String(300 + Object.keys(ixTypes).indexOf(type)),
    permalink: `https://sandbox.app.invoicexpress.com/documents/${id}${digest('sha1', String(id))}`,
    saft_hash: hash && [0, 10, 20, 30].map(at => hash[at]).join(''),
    client: { id: client.id, name: client.name, country: client.country },
    ...(multicurrency && { multicurrency: renderMulticurrency(multicurrency, id) }),
    mb_reference: renderMultibanco(document),
  }
}

/** Types of documents that are paid after they are issued. Invoice-receipts and cash sales are already paid at that moment. */
const paidLater: readonly IxDocument['type'][] = ['Invoice', 'SimplifiedInvoice', 'VatMossInvoice']

/** Returns Multibanco's entity and reference for an unpaid Portuguese document, as an object or as one text. */
function renderMultibanco({ id, type, status, client, multicurrency }: IxDocument): object | string | null {
  const isOwed = status === 'final' && paidLater.includes(type)
  if (!isOwed || client.country !== 'Portugal' || multicurrency !== undefined) return null
  const [entity, reference] = ['10611', String(id % 1_000_000_000).padStart(9, '0')]
  return id % 2 === 0 ? { entity, reference } : `${entity} ${reference}`
}

/** Varies the form of the currency, the numbers and the rate. Clients must not depend on one form. */
function renderMulticurrency({ rate, code, total }: IxMulticurrency, id: number): object {
  const isReversed = id % 10 === 1
  const shown = isReversed ? Number((1 / rate).toPrecision(9)) : rate
  const digits = decimalsOf(code)
  return {
    rate: id % 3 === 0 ? shown : String(shown),
    currency: id % 2 === 0 ? currencyOf(code).name : code.toUpperCase(),
    total: id % 4 === 0 ? total.toFixed(digits) : total,
  }
}

/** Imitates oddities of InvoiceXpress. Some numbers are texts, some booleans are numbers, and some exempt items have no tax rate. */
function writeOddly(
  { id, archived, total, client }: IxDocument,
  given: Record<string, unknown> & { items: { tax: { value: number } }[]; client: object },
): object {
  const isRateless = id % 19 === 0
  const items = given.items.map(item => ({
    ...item,
    tax: { ...item.tax, ...(isRateless && item.tax.value === 0 && { value: null }) },
  }))
  if (id % 3 !== 0) return { ...given, items }
  return {
    ...given,
    archived: archived ? 1 : 0,
    total: String(total),
    client: { ...given.client, id: String(client.id) },
    items: items.map(item => ({ ...item, tax: { ...item.tax, value: writeRate(item.tax.value) } })),
  }
}

function writeRate(value: number | null): string | null {
  if (value === null) return null
  return Number.isInteger(value) ? value.toFixed(1) : String(value)
}

function writeClientOddly(client: IxClient): object {
  if (client.id % 2 === 0) return client
  const fiscal_id = /^[1-9]\d*$/.test(client.fiscal_id ?? '') ? Number(client.fiscal_id) : client.fiscal_id
  return { ...client, id: String(client.id), fiscal_id }
}
