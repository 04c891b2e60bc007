/** From a payment platform to the store: everything once, then what happens, and now and then what may have been missed. */

import type { Logger } from 'pino'
import type { InvoiceKey } from '../invoice.ts'
import type {
  BillingSource,
  Notification,
  NotificationPage,
  Observation,
  ObservationPage,
} from '../sources.ts'
import { SourceError } from '../sources.ts'
import type { JournalEntry } from '../store/document-store.ts'
import type { Stream, WriteStore, WriteTransaction } from '../store/store.ts'
import { type Applied, addApplied, applyObservations, type Cause, nothingApplied } from './apply.ts'
import { type Brake, noBrake } from './brake.ts'
import { type LinkRules, usualRules } from './link.ts'
import { createStamps } from './stamps.ts'
import { createStreams, succeed } from './streams.ts'

export const backfillStream = 'stripe:backfill'
export const eventsStream = 'stripe:events'
export const unsettledStream = 'stripe:unsettled'

/** Events are kept for 30 days; a gap nearly as long is closed by listing everything again. */
const longestGap = 29 * 24 * 60 * 60
/** Events may become visible a little late; what was read already is not fetched again. */
const overlap = 300
const rememberedEvents = 10_000
const rememberedAnswers = 10_000
const batchSize = 100

export interface ConnectorOptions {
  source: BillingSource
  store: WriteStore
  log: Logger
  signal: AbortSignal
  /** `part` is how much of the way is done, from 0 to 1; null when nobody can tell. */
  onProgress?(step: string, invoices: number, part: number | null): void
  /** Whether to find out, by some more questions, how long the way is. */
  estimate?: boolean
  /** How invoices are tied to documents. */
  rules?: LinkRules
  brake?: Brake
}

export interface Connector {
  /** The stamp before its first question. */
  startedAt: number
  /** Lists the whole account; goes on where it was cut off, and does nothing once it reached the end. */
  backfill(): Promise<Applied>
  /** Applies what happened since the last time. */
  catchUp(): Promise<Applied>
  /**
   * Looks again at whatever may still change or be deleted, in case an event was missed; with a stamp, only at what was
   * not looked at since.
   */
  rereadUnsettled(unlessSince?: number): Promise<Applied>
  /** Applies one notification; once it resolves, the change is committed. */
  applyNotification(notification: Notification): Promise<Applied>
}

interface AskedPage {
  askedAt: number
  page: Promise<ObservationPage>
}

export async function createConnector(options: ConnectorOptions): Promise<Connector> {
  const { source, store, log, signal, onProgress, estimate = false, rules = usualRules } = options
  const { brake = noBrake } = options
  const nextStamp = createStamps(await store.readLastObserved())
  const startedAt = nextStamp()
  const streams = createStreams(store, signal)
  const handled = new Set<string>()
  /** When the last answer about an invoice was there. Of questions asked before, it is open which saw more. */
  const answered = new Map<string, number>()

  /** Commits observations, and with them whatever else must not run ahead of them. */
  async function commit(
    observations: readonly Observation[],
    askedAt: number,
    cause: Cause | null = null,
    alongside?: (tx: WriteTransaction) => Promise<void>,
  ): Promise<Applied> {
    const applied = await store.transaction(async tx => {
      const isOpen = (id: string) => (answered.get(id) ?? 0) > askedAt
      const result = await applyObservations(tx, observations, askedAt, { isOpen, rules, cause, brake })
      for (const { id } of observations) remember(id)
      await alongside?.(tx)
      return result
    })
    for (const [reason, count] of Object.entries(applied.refused))
      log.debug({ reason, count }, 'invoices refused')
    return applied
  }

  function remember(id: string): void {
    answered.delete(id)
    answered.set(id, nextStamp())
    if (answered.size > rememberedAnswers) answered.delete(answered.keys().next().value as string)
  }

  /** Lists from the stream's cursor; from the beginning when the invoice that it names is gone. */
  async function listAll(stream: Stream): Promise<Applied> {
    try {
      return await listFrom(stream)
    } catch (error) {
      if (!isMissing(error)) throw error
      log.warn('the invoice where the list was cut off is gone; listing from the beginning')
      return listFrom({ ...stream, cursor: null })
    }
  }

  function askPage(after: string | null): AskedPage {
    const askedAt = nextStamp()
    const page = source.listInvoices(after)
    // Noticed when it is waited for, which it is not once the page before could not be stored.
    page.catch(() => {})
    return { askedAt, page }
  }

  async function listFrom(stream: Stream): Promise<Applied> {
    // What happens while the list is read is told by events: they are to be read from before its first page.
    const events = await streams.read(eventsStream)
    if (stream.cursor === null) {
      const { now } = await source.listNotifications(0, null)
      await store.transaction(async tx => {
        await tx.saveStream({ ...events, cursor: String(now) })
        // From here on the list alone tells what the events before did: until its end there is no success.
        await tx.saveStream({ ...stream, succeeded_at: null })
      })
    }
    const way = estimate ? createWay(await source.estimateFirst()) : null
    let total = nothingApplied
    let seen = 0
    signal.throwIfAborted()
    let asked: AskedPage | null = askPage(stream.cursor)
    while (asked !== null) {
      const { askedAt, page }: AskedPage = asked
      const { observations, next, reached }: ObservationPage = await page
      // The next page is on its way while this one is stored; once the signal came, none is asked for.
      asked = next === null || signal.aborted ? null : askPage(next)
      const alongside =
        next === null
          ? succeed(stream, null)
          : (tx: WriteTransaction) => tx.saveStream({ ...stream, succeeded_at: null, cursor: next })
      total = addApplied(total, await commit(observations, askedAt, null, alongside))
      seen += observations.length
      onProgress?.('listed', seen, way?.(reached) ?? null)
      if (next !== null && asked === null) signal.throwIfAborted()
    }
    return total
  }

  async function applyCustomer(customerId: string, cause: Cause): Promise<Applied> {
    let total = nothingApplied
    let after: string | null = null
    for (;;) {
      signal.throwIfAborted()
      const askedAt = nextStamp()
      const page: ObservationPage | null = await source.listInvoices(after, customerId).catch(error => {
        if (isMissing(error)) return null
        throw error
      })
      // The draft where the page was to begin is gone: from the beginning. Or the customer is: it has nothing.
      if (page === null && after === null) return total
      if (page !== null) total = addApplied(total, await commit(page.observations, askedAt, cause))
      if (page !== null && page.next === null) return total
      after = page?.next ?? null
    }
  }

  async function applyInvoice(
    id: string,
    customerId: string | null,
    cause: Cause | null = null,
  ): Promise<Applied> {
    signal.throwIfAborted()
    const askedAt = nextStamp()
    return commit([await source.fetchInvoice(id, customerId)], askedAt, cause)
  }

  async function applyNotification(notification: Notification): Promise<Applied> {
    const { id, type, created, invoice_id, customer_id } = notification
    const cause = { id, type, happened_at: created * 1000 }
    if (invoice_id !== null) return applyInvoice(invoice_id, customer_id, cause)
    return customer_id === null ? nothingApplied : applyCustomer(customer_id, cause)
  }

  const readPage = (since: number, after: string | null) =>
    source.listNotifications(Math.max(0, since - overlap), after)

  /** The records follow the platform up to when the first page was asked for, not to when the last was applied. */
  async function readEvents(stream: Stream, first: NotificationPage, askedAt: number): Promise<Applied> {
    const since = Number(stream.cursor ?? 0)
    let total = nothingApplied
    let page = first
    for (;;) {
      const fresh = byThing(page.notifications.filter(({ id }) => !handled.has(id)))
      for (const [newest, ...others] of fresh) {
        if (newest === undefined) continue
        total = addApplied(total, await applyNotification(newest))
        if (others.length > 0) await store.transaction(tx => tx.saveEntries(tellMerged(newest, others)))
      }
      for (const { id } of page.notifications) handled.add(id)
      if (page.next === null) break
      page = await readPage(since, page.next)
    }
    while (handled.size > rememberedEvents) handled.delete(handled.values().next().value as string)
    await store.transaction(succeed(stream, String(Math.max(since, first.now)), askedAt))
    return total
  }

  return {
    startedAt,
    async backfill() {
      const { succeeded_at, cursor } = await streams.read(backfillStream)
      if (succeeded_at !== null && cursor === null) return nothingApplied
      return streams.run(backfillStream, listAll)
    },
    catchUp() {
      return streams.run(eventsStream, async stream => {
        const since = Number(stream.cursor ?? 0)
        const askedAt = Date.now()
        const page = await readPage(since, null)
        const gap = since === 0 ? 0 : page.now - since
        if (gap <= longestGap) return readEvents(stream, page, askedAt)
        log.warn(
          { days: Math.round(gap / 86_400) },
          'events reach back 30 days only; listing everything again',
        )
        const backfill = await streams.read(backfillStream)
        const listed = await streams.run(backfillStream, () => listAll({ ...backfill, cursor: null }))
        const events = await streams.read(eventsStream)
        const relistedAt = Date.now()
        const next = await readPage(Number(events.cursor ?? 0), null)
        return addApplied(listed, await readEvents(events, next, relistedAt))
      })
    },
    rereadUnsettled(unlessSince = nextStamp()) {
      return streams.run(unsettledStream, async stream => {
        let total = nothingApplied
        let after = readKey(stream.cursor)
        for (;;) {
          const keys = await store.readUnsettled(after, batchSize, unlessSince)
          for (const { id, customer_id } of keys)
            total = addApplied(total, await applyInvoice(id, customer_id))
          after = keys.at(-1) ?? null
          if (keys.length < batchSize) break
          const cursor = after && `${after.customer_id} ${after.id}`
          await store.transaction(tx => tx.saveStream({ ...stream, cursor }))
        }
        await store.transaction(succeed(stream, null))
        return total
      })
    },
    applyNotification,
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof SourceError && error.failure === 'missing'
}

/** How much of the way a list has gone that runs back in time: from where it began to the first invoice. */
function createWay(first: number | null): (reached: number) => number | null {
  let began: number | null = null
  return reached => {
    began ??= reached
    if (first === null || began <= first) return null
    return Math.min(1, (began - reached) / (began - first))
  }
}

/** Of several notifications about one thing, one is enough: its state is fetched. */
function byThing(notifications: readonly Notification[]): Notification[][] {
  const thingOf = ({ id, invoice_id, customer_id }: Notification) => invoice_id ?? customer_id ?? id
  return [...Map.groupBy(notifications, thingOf).values()]
}

function tellMerged(newest: Notification, others: readonly Notification[]): JournalEntry[] {
  const at = Date.now()
  return others.flatMap(({ id: cause, type, created, invoice_id, customer_id }) => {
    if (invoice_id === null || customer_id === null) return []
    const detail = `read together with ${newest.id}: the invoice was fetched once, as it is now`
    const happened_at = created * 1000
    return [{ customer_id, id: invoice_id, cause, type, happened_at, at, outcome: 'ignored', detail }]
  })
}

function readKey(cursor: string | null): InvoiceKey | null {
  const [customer_id, id] = cursor?.split(' ') ?? []
  return customer_id !== undefined && id !== undefined ? { customer_id, id } : null
}
