/** PDFs of documents. A PDF takes time to create, and its address expires. */

import { createDocumentPdf } from '../pdf.ts'
import { letters, type Random } from '../random.ts'
import { SandboxError } from '../spoil.ts'
import type { DocumentAccount } from './account.ts'
import { notFound } from './errors.ts'
import type { IxDocument } from './objects.ts'

export interface PdfOptions {
  /** Number of requests for a document's PDF that are answered with 202. With Infinity, only `finish` ends these answers. */
  delay: number
  /** Time for which an address is valid. */
  lifetimeMs: number
}

export interface Pdfs {
  /** Returns the path of the document's PDF with a new secret. Null while the PDF is being made. */
  ask(id: number): string | null
  read(id: number, secret: string): Buffer
  /** Returns a new secret that opens the document for a limited time. */
  addSecret(id: number): string
  open(id: number, secret: string): IxDocument
  /** Ends the 202 answers for a document's PDF, or for all PDFs when `id` is missing. */
  finish(id?: number): void
}

export function createPdfs(documents: DocumentAccount, random: Random, options: PdfOptions): Pdfs {
  const asked = new Map<number, number>()
  const finished = new Set<number>()
  const secrets = new Map<string, { id: number; until: number }>()
  let isAllFinished = false

  /** Returns the document. Throws when the document cannot have a PDF. */
  function find(id: number) {
    const document = documents.documents.get(id)
    if (document === undefined || document.status === 'deleted') throw notFound('document')
    if (document.status === 'draft') throw new SandboxError(422, 'A draft has no PDF.')
    return document
  }

  function addSecret(id: number): string {
    const secret = letters(random, 40)
    secrets.set(secret, { id, until: performance.now() + options.lifetimeMs })
    return secret
  }

  function open(id: number, secret: string): IxDocument {
    const found = secrets.get(secret)
    if (found === undefined || found.id !== id) throw notFound('file')
    if (found.until < performance.now()) throw new SandboxError(403, 'Request has expired.')
    return find(id)
  }

  return {
    addSecret,
    open,
    ask(id) {
      find(id)
      const before = asked.get(id) ?? 0
      asked.set(id, before + 1)
      if (before < options.delay && !isAllFinished && !finished.has(id)) return null
      return `/pdf/${id}/${addSecret(id)}.pdf`
    },
    read(id, secret) {
      const document = open(id, secret)
      return createDocumentPdf(document, documents.clients.get(document.client.id))
    },
    finish(id) {
      if (id === undefined) isAllFinished = true
      else finished.add(id)
    },
  }
}
