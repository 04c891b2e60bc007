/** Dependencies that the parts of the connector for the payment platform share. */
import type { Logger } from 'pino'
import type { BillingSource } from '../../sources/source.ts'
import type { BillingStreams } from '../../sources/stream-names.ts'
import type { NextStamp } from '../../store/stamps.ts'
import type { WriteStore } from '../../store/store.ts'
import type { Streams } from '../streams.ts'
import type { Commits } from './commit-answers.ts'
import type { Corrections } from './corrections.ts'

export interface SyncContext {
  source: BillingSource
  store: WriteStore
  streams: Streams
  names: BillingStreams
  nextStamp: NextStamp
  commits: Commits
  corrections: Corrections
  log: Logger
  signal: AbortSignal
  /** `part` is the share of the list that is done, from 0 to 1. Null when unknown. */
  reportProgress?: ((step: string, invoices: number, part: number | null) => void) | undefined
}
