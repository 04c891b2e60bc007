/** What the parts share that follow the invoicing system. */
import type { Logger } from 'pino'
import type { NextStamp } from '../../store/stamps.ts'
import type { WriteStore } from '../../store/store.ts'
import type { createQueue } from '../concurrency.ts'
import type { Linking } from '../link-invoices.ts'

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
