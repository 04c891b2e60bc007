/** Every address of the local InvoiceXpress and what it answers. */
import type { DocumentRouteName } from './faults.ts'
import type { DocumentAccount } from './invoicexpress-account.ts'
import { notFound } from './invoicexpress-errors.ts'
import { listDocuments } from './invoicexpress-list.ts'
import { type IxDocument, ixTypes } from './invoicexpress-objects.ts'
import type { Pdfs } from './invoicexpress-pdfs.ts'
import { type Answer, jsonAnswer } from './spoil.ts'

export interface IxWorld {
  documents: DocumentAccount
  pdfs: Pdfs
  /** What the addresses of PDFs begin with. */
  address: string
  /** How long a change takes to be seen in lists, in milliseconds. */
  lag: number
}

export interface IxRoute {
  name: DocumentRouteName
  path: RegExp
  /** Read without a key: its address holds a secret. */
  isOpen?: true
  /** `parts` is what the path's groups caught. */
  answer(world: IxWorld, search: URLSearchParams, parts: string[]): Answer
}

const typePaths = Object.values(ixTypes).map(({ path }) => path)

export const ixRoutes: readonly IxRoute[] = [
  {
    name: 'ix_list',
    path: /^\/invoices\.json$/,
    answer: ({ documents, lag }, search) => jsonAnswer(200, listDocuments(documents, search, lag)),
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
      return jsonAnswer(200, { client })
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
    answer: ({ pdfs }, _search, [id, secret = '']) => ({
      status: 200,
      type: 'application/pdf',
      body: pdfs.read(Number(id), secret),
    }),
  },
]

/** By itself a document has numbers where a list has text. */
function renderDocument(document: IxDocument): object {
  const items = document.items.map(item => ({
    ...item,
    quantity: Number(item.quantity),
    unit_price: Number(item.unit_price),
  }))
  return { ...document, items }
}
