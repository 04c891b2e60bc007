/** What the parts share that follow the invoicing system: the context of all rounds, and one round. */
import type { Logger } from 'pino'
import type { DocumentSource } from '../../sources/source.ts'
import type { NextStamp } from '../../store/stamps.ts'
import type { WriteStore } from '../../store/store.ts'
import type { createQueue } from '../concurrency.ts'
import type { Linking } from '../link-invoices.ts'
import type { Aside } from './set-aside-documents.ts'

export interface DocumentContext extends Linking {
  /** The system that set-aside records are stored under. */
  system: string
  store: WriteStore
  log: Logger
  signal: AbortSignal
  nextStamp: NextStamp
  /** Answers arrive in parallel; the store takes one after the other. */
  enqueue: ReturnType<typeof createQueue>
  /** What the key may not read, as it was logged. */
  forbidden: Set<string>
  /** Documents of one more page. */
  noteProgress(documents: number): void
}

/** Every document is fetched once at most, and missed once at most. */
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
