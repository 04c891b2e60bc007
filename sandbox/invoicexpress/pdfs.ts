/** PDFs that take their time, at addresses that are good for a while. */

import { createDocumentPdf } from '../pdf.ts'
import { letters, type Random } from '../random.ts'
import type { DocumentAccount } from './account.ts'
import { IxError, notFound } from './errors.ts'

export interface PdfOptions {
  /** How often a document's PDF is still being made when it is asked for. For ever with Infinity, until told. */
  delay: number
  /** How long an address is good, in milliseconds. */
  lifetime: number
}

export interface Pdfs {
  /** The path of the document's PDF with a new secret; null while it is being made. */
  ask(id: number): string | null
  read(id: number, secret: string): Buffer
  /** The PDF is made from now on; every one when no document is given. */
  finish(id?: number): void
}

export function createPdfs(documents: DocumentAccount, random: Random, options: PdfOptions): Pdfs {
  const asked = new Map<number, number>()
  const finished = new Set<number>()
  const secrets = new Map<string, { id: number; until: number }>()
  let isAllFinished = false

  /** The document, if there may be a PDF of it. */
  function find(id: number) {
    const document = documents.documents.get(id)
    if (document === undefined || document.status === 'deleted') throw notFound('document')
    if (document.status === 'draft') throw new IxError(422, 'A draft has no PDF.')
    return document
  }

  return {
    ask(id) {
      find(id)
      const before = asked.get(id) ?? 0
      asked.set(id, before + 1)
      if (before < options.delay && !isAllFinished && !finished.has(id)) return null
      const secret = letters(random, 40)
      secrets.set(secret, { id, until: performance.now() + options.lifetime })
      return `/pdf/${id}/${secret}.pdf`
    },
    read(id, secret) {
      const found = secrets.get(secret)
      if (found === undefined || found.id !== id) throw notFound('file')
      if (found.until < performance.now()) throw new IxError(403, 'Request has expired.')
      const document = find(id)
      return createDocumentPdf(document, documents.clients.get(document.client.id))
    },
    finish(id) {
      if (id === undefined) isAllFinished = true
      else finished.add(id)
    },
  }
}
