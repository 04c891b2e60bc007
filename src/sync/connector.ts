/** From a payment platform to the store: everything once, then what happens, and now and then what may have been missed. */

import type { Logger } from 'pino'
import { type LinkRules, usualRules } from '../linking/link.ts'
import type { BillingSource, Notification, SourceIdentity } from '../sources.ts'
import type { WriteStore } from '../store/store.ts'
import { billingStreams } from '../stream-names.ts'
import { createAnswers } from './answers.ts'
import type { Applied } from './apply.ts'
import { createBackfill } from './backfill.ts'
import { type Brake, noBrake } from './brake.ts'
import { followEvents } from './events.ts'
import { createLooks, rememberEvents } from './looks.ts'
import { createRelist } from './relist.ts'
import { createRetry } from './set-aside.ts'
import { createStreams } from './streams.ts'
import { createReread } from './unsettled.ts'
import type { World } from './world.ts'

export interface ConnectorOptions {
  source: BillingSource
  store: WriteStore
  log: Logger
  signal: AbortSignal
  /** `part` is how much of the way is done, from 0 to 1; null when nobody can tell. */
  onProgress?(step: string, invoices: number, part: number | null): void
  /** How invoices are tied to documents. */
  rules?: LinkRules
  /** What holds back deletions when there are implausibly many. */
  brake?: Brake
}

/** What it does may go on side by side. */
export interface Connector {
  /** Where the invoices come from. */
  source: SourceIdentity & Pick<BillingSource, 'relistEveryMs'>
  /** The stamp before its first question. */
  startedAt: number
  /** Lists the whole account; goes on where it was cut off, and does nothing once it reached the end. */
  backfill(): Promise<Applied>
  /** Whether the whole account was listed. */
  isListed(): Promise<boolean>
  /**
   * Applies what happened since the last time. When that is too long ago, everything is to be listed again: `isListed`
   * says so then. `patience` is how long to wait for the lists of whole customers, in milliseconds; what is not done by
   * then goes on, and is asked for again next time.
   */
  catchUp(patience?: number): Promise<Applied>
  /**
   * Looks again at whatever may still change or be deleted, in case an event was missed; with a stamp, only when
   * something was not looked at since.
   */
  rereadUnsettled(unlessSince?: number): Promise<Applied>
  /** Lists everything again, slowly; or at once when it is forced, or when only so many pages are to be read. */
  relist(isForced: boolean, pagesAtMost?: number): Promise<Applied>
  /** Tries again what did not fit, or was refused and not seen for a while; null when there is nothing of it. */
  retrySetAside(): Promise<Applied | null>
  /** Fetches one invoice again, and then those near it: its customer's, and those created within the same hour, as far as some pages go. */
  lookAt(id: string, customerId: string): Promise<Applied>
  lookAround(customerId: string, created: number | null): Promise<Applied>
  /** Looks again at what was seen while part of the store was out of reach; null when there is nothing of it. */
  retryWaiting(): Promise<Applied | null>
  /** Applies one notification; once it resolves, the change is committed. */
  applyNotification(notification: Notification): Promise<Applied>
}

export async function createConnector(options: ConnectorOptions): Promise<Connector> {
  const { source, store, log, signal, onProgress, rules = usualRules, brake = noBrake } = options
  const answers = await createAnswers({ system: source.system, store, rules, brake, log })
  const streams = createStreams(store, signal)
  const world: World = { source, store, log, signal, answers, streams, names: billingStreams(source) }
  const handled = rememberEvents()
  const looks = createLooks(world, handled)
  const backfill = createBackfill(world, onProgress)
  const retry = createRetry(world, looks)
  const readEvents = followEvents(world, { looks, handled, listAgain: backfill.listAgain })
  return {
    source,
    startedAt: answers.startedAt,
    backfill: backfill.run,
    isListed: backfill.isDone,
    async catchUp(patience) {
      await backfill.begun()
      return readEvents(patience)
    },
    rereadUnsettled: createReread(world, looks),
    relist: createRelist(world, looks, onProgress),
    retrySetAside: retry.tryOthers,
    retryWaiting: retry.tryWaiting,
    lookAt: (id, customerId) => looks.lookAt(id, customerId, 'soon'),
    lookAround: looks.lookAround,
    applyNotification: notification => looks.follow([notification]),
  }
}
