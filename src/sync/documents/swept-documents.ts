/** Tells which documents count as corrected after a sweep of all documents. Pure. */
import { isDeepStrictEqual } from 'node:util'
import { type Document, openDocumentStatuses } from '../../domain/document.ts'
import type { ReplacedDocument } from '../../store/document-store.ts'

/**
 * Whether only a full sweep shows this change. Open and recent documents are read every few minutes
 * as well, so their changes are no corrections. `recentFrom` is the first day of recent documents.
 */
export function isSweptAlone({ before, after }: ReplacedDocument, recentFrom: string): boolean {
  if (before !== null && isDeepStrictEqual(withoutLeftOut(before), withoutLeftOut(after))) return false
  return ![before, after].some(document => document !== null && isReadOften(document, recentFrom))
}

function isReadOften({ status, date }: Document, recentFrom: string): boolean {
  const isOpen = (openDocumentStatuses as readonly string[]).includes(status)
  return isOpen || date === null || date >= recentFrom
}

/** Removes `left_out` before documents are compared. A list may leave out a field that the document has when it is fetched by its id. */
function withoutLeftOut({ left_out: _, ...document }: Document): Omit<Document, 'left_out'> {
  return document
}
