/** One round over documents: every document is fetched once at most, and missed once at most. */
import type { DocumentSource } from '../../sources.ts'
import type { Aside } from './set-aside-documents.ts'

export interface Round {
  source: DocumentSource
  /** The beginning, in milliseconds and as a stamp. */
  at: number
  stamp: number
  /** A document that was missed after this stamp was missed in this round already. */
  missedBefore: number
  /** What was set aside when it began. */
  aside: Aside
  /** Of a sweep whose corrections count, the first day that lists of recent documents read; null when none counts. */
  recentFrom: string | null
  counts: RoundCounts
}

/** Documents read, documents that the system does not have, documents that do not fit, and invoices whose link changed. */
export type Swept = ReturnType<RoundCounts['read']>

export class RoundCounts {
  private documents = 0
  private missed = 0
  private misfits = 0
  private changed = 0

  noteListed(documents: number): void {
    this.documents += documents
  }

  /** Of a single document: whether it was there. */
  noteFetched(isThere: boolean): void {
    this.documents++
    if (!isThere) this.missed++
  }

  noteMisfits(count: number): void {
    this.misfits += count
  }

  /** Invoices whose link changed. */
  noteChanged(count: number): void {
    this.changed += count
  }

  read() {
    const { documents, missed, misfits, changed } = this
    return { documents, missed, misfits, changed }
  }
}
