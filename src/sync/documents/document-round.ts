/** Types that the parts of the connector for the invoicing system share: their context, and one round. */
import type { Logger } from 'pino'
import type { DocumentSource } from '../../sources/source.ts'
import type { NextStamp } from '../../store/stamps.ts'
import type { WriteStore } from '../../store/store.ts'
import type { createQueue } from '../concurrency.ts'
import type { Linking } from '../link-invoices.ts'
import type { Aside } from './set-aside-documents.ts'

export interface DocumentContext extends Linking {
  /** The system under which set-aside records are stored. */
  system: string
  store: WriteStore
  log: Logger
  signal: AbortSignal
  nextStamp: NextStamp
  /** Runs transactions one after the other, because answers arrive in parallel. */
  enqueue: ReturnType<typeof createQueue>
  /** Messages about missing permissions that were logged already. */
  forbidden: Set<string>
  reportProgress(documents: number): void
}

/** One round over documents. It fetches each document at most once, and counts each document as missed at most once. */
export interface Round {
  source: DocumentSource
  /** Beginning of the round, in milliseconds and as a stamp. */
  at: number
  stamp: number
  /** A document that was missed after this stamp is not counted as missed again. */
  missedBefore: number
  /** Records that were set aside when the round began. */
  aside: Aside
  /**
   * First day that the lists of recent documents cover. A round that counts corrections needs this day. Null for a round that counts none.
   */
  recentFrom: string | null
  counts: RoundCounts
}

/**
 * Counts of a round: documents read, documents that the system does not
 * have, documents that failed the checks, and invoices whose link changed.
 */
export type Swept = ReturnType<RoundCounts['read']>

export class RoundCounts {
  private documents = 0
  private missed = 0
  private misfits = 0
  private changed = 0

  addListed(documents: number): void {
    this.documents += documents
  }

  /** Counts a document that was fetched by its id. `isThere`: the system has the document. */
  addFetched(isThere: boolean): void {
    this.documents++
    if (!isThere) this.missed++
  }

  addMisfits(count: number): void {
    this.misfits += count
  }

  addRelinked(count: number): void {
    this.changed += count
  }

  read() {
    const { documents, missed, misfits, changed } = this
    return { documents, missed, misfits, changed }
  }
}
