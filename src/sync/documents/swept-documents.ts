/** Which of the documents that a sweep of everything replaced count as corrected. Pure. */
import { isDeepStrictEqual } from 'node:util'
import { type Document, openDocumentStatuses } from '../../domain/document.ts'
import type { ReplacedDocument } from '../../store/document-store.ts'

/**
 * Whether only the sweep shows this change. Open documents and those dated since a day are read every few minutes: of these, the
 * sweep may be the first to see a change, and corrects nothing.
 */
export function isSweptAlone({ before, after }: ReplacedDocument, recentFrom: string): boolean {
  if (before !== null && isDeepStrictEqual(withoutNote(before), withoutNote(after))) return false
  return ![before, after].some(document => document !== null && isReadOften(document, recentFrom))
}

function isReadOften({ status, date }: Document, recentFrom: string): boolean {
  const isOpen = (openDocumentStatuses as readonly string[]).includes(status)
  return isOpen || date === null || date >= recentFrom
}

/** A list may leave out a field that the document by itself has: that is no change. */
function withoutNote({ left_out: _, ...document }: Document): Omit<Document, 'left_out'> {
  return document
}
