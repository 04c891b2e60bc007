/** PDFs that take time to make, at addresses that expire. */

import { createDocumentPdf } from '../pdf.ts'
import { letters, type Random } from '../random.ts'
import { SandboxError } from '../spoil.ts'
import type { DocumentAccount } from './account.ts'
import { notFound } from './errors.ts'
import type { IxDocument } from './objects.ts'

export interface PdfOptions {
  /** Requests of a document's PDF that are answered with 202. Infinity: until `finish`. */
  delay: number
  /** How long an address is valid. */
  lifetimeMs: number
}

export interface Pdfs {
  /** The path of the document's PDF with a new secret; null while it is being made. */
  ask(id: number): string | null
  read(id: number, secret: string): Buffer
  /** A new secret that opens the document for a while. */
  addSecret(id: number): string
  /** The document that a secret opens. */
  open(id: number, secret: string): IxDocument
  /** Ends the 202 answers of a document's PDF; of every one when no document is given. */
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
