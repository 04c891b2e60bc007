/** What every part of the connector works with. */
import type { Logger } from 'pino'
import type { BillingSource } from '../sources.ts'
import type { WriteStore } from '../store/store.ts'
import type { BillingStreams } from '../stream-names.ts'
import type { Answers } from './answers.ts'
import type { Streams } from './streams.ts'

export interface World {
  source: BillingSource
  store: WriteStore
  streams: Streams
  /** What the source's streams are called. */
  names: BillingStreams
  answers: Answers
  log: Logger
  signal: AbortSignal
}
