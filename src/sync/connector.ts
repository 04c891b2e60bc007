/** From a payment platform to the store: everything once, then what happens, and now and then what may have been missed. */
import type { Logger } from 'pino'
import type {
  BillingSource,
  Notification,
  NotificationPage,
  Observation,
  ObservationPage,
} from '../sources.ts'
import { SourceError } from '../sources.ts'
import type { InvoiceKey, Stream, WriteStore, WriteTransaction } from '../store/store.ts'
import { type Applied, addApplied, applyObservations, nothingApplied } from './apply.ts'
import { createStamps } from './stamps.ts'

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
}

export interface Connector {
  /** Lists the whole account; goes on where it was cut off, and does nothing once it reached the end. */
  backfill(): Promise<Applied>
  /** Applies what happened since the last time. */
  catchUp(): Promise<Applied>
  /** Looks again at whatever may still change or be deleted, in case an event was missed. */
  rereadUnsettled(): Promise<Applied>
  /** Applies one notification; once it resolves, the change is committed. */
  applyNotification(notification: Notification): Promise<Applied>
}

export async function createConnector(options: ConnectorOptions): Promise<Connector> {
  const { source, store, log, signal, onProgress, estimate = false } = options
  const nextStamp = createStamps(await store.readLastObserved())
  const handled = new Set<string>()
  /** When the last answer about an invoice was there. Of questions asked before, it is open which saw more. */
  const answered = new Map<string, number>()

  async function readStream(name: string): Promise<Stream> {
    const streams = await store.listStreams()
    return (
      streams.find(stream => stream.name === name) ?? {
        name,
        cursor: null,
        succeeded_at: null,
        failed_at: null,
        error: null,
      }
    )
  }

  /** Commits observations, and with them whatever else must not run ahead of them. */
  async function commit(
    observations: readonly Observation[],
    askedAt: number,
    alongside?: (tx: WriteTransaction) => Promise<void>,
  ): Promise<Applied> {
    const applied = await store.transaction(async tx => {
      const isOpen = (id: string) => (answered.get(id) ?? 0) > askedAt
      const result = await applyObservations(tx, observations, askedAt, isOpen)
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

  /** Runs a stream to its end, or records why it did not get there. */
  async function runStream(name: string, run: (stream: Stream) => Promise<Applied>): Promise<Applied> {
    try {
      return await run(await readStream(name))
    } catch (error) {
      if (!signal.aborted) {
        const message = error instanceof Error ? error.message : String(error)
        const stream = await readStream(name)
        await store.transaction(tx => tx.saveStream({ ...stream, failed_at: Date.now(), error: message }))
      }
      throw error
    }
  }

  const succeed =
    (stream: Stream, cursor: string | null, at = Date.now()) =>
    (tx: WriteTransaction) =>
      tx.saveStream({ ...stream, cursor, succeeded_at: at, failed_at: null, error: null })

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

  async function listFrom(stream: Stream): Promise<Applied> {
    // What happens while the list is read is told by events: they are to be read from before its first page.
    const events = await readStream(eventsStream)
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
    let after = stream.cursor
    do {
      signal.throwIfAborted()
      const askedAt = nextStamp()
      const { observations, next, reached } = await source.listInvoices(after)
      const alongside =
        next === null
          ? succeed(stream, null)
          : (tx: WriteTransaction) => tx.saveStream({ ...stream, succeeded_at: null, cursor: next })
      total = addApplied(total, await commit(observations, askedAt, alongside))
      seen += observations.length
      onProgress?.('listed', seen, way?.(reached) ?? null)
      after = next
    } while (after !== null)
    return total
  }

  async function applyCustomer(customerId: string): Promise<Applied> {
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
      if (page !== null) total = addApplied(total, await commit(page.observations, askedAt))
      if (page !== null && page.next === null) return total
      after = page?.next ?? null
    }
  }

  async function applyInvoice(id: string, customerId: string | null): Promise<Applied> {
    signal.throwIfAborted()
    const askedAt = nextStamp()
    return commit([await source.fetchInvoice(id, customerId)], askedAt)
  }

  async function applyNotification({ invoice_id, customer_id }: Notification): Promise<Applied> {
    if (invoice_id !== null) return applyInvoice(invoice_id, customer_id)
    return customer_id === null ? nothingApplied : applyCustomer(customer_id)
  }

  const readPage = (since: number, after: string | null) =>
    source.listNotifications(Math.max(0, since - overlap), after)

  /** The records follow the platform up to when the first page was asked for, not to when the last was applied. */
  async function readEvents(stream: Stream, first: NotificationPage, askedAt: number): Promise<Applied> {
    const since = Number(stream.cursor ?? 0)
    let total = nothingApplied
    let page = first
    for (;;) {
      for (const notification of distinct(page.notifications.filter(({ id }) => !handled.has(id))))
        total = addApplied(total, await applyNotification(notification))
      for (const { id } of page.notifications) handled.add(id)
      if (page.next === null) break
      page = await readPage(since, page.next)
    }
    while (handled.size > rememberedEvents) handled.delete(handled.values().next().value as string)
    await store.transaction(succeed(stream, String(Math.max(since, first.now)), askedAt))
    return total
  }

  return {
    async backfill() {
      const { succeeded_at, cursor } = await readStream(backfillStream)
      if (succeeded_at !== null && cursor === null) return nothingApplied
      return runStream(backfillStream, listAll)
    },
    catchUp() {
      return runStream(eventsStream, async stream => {
        const since = Number(stream.cursor ?? 0)
        const askedAt = Date.now()
        const page = await readPage(since, null)
        const gap = since === 0 ? 0 : page.now - since
        if (gap <= longestGap) return readEvents(stream, page, askedAt)
        log.warn(
          { days: Math.round(gap / 86_400) },
          'events reach back 30 days only; listing everything again',
        )
        const backfill = await readStream(backfillStream)
        const listed = await runStream(backfillStream, () => listAll({ ...backfill, cursor: null }))
        const events = await readStream(eventsStream)
        const relistedAt = Date.now()
        const next = await readPage(Number(events.cursor ?? 0), null)
        return addApplied(listed, await readEvents(events, next, relistedAt))
      })
    },
    rereadUnsettled() {
      return runStream(unsettledStream, async stream => {
        let total = nothingApplied
        let after = readKey(stream.cursor)
        for (;;) {
          const keys = await store.readUnsettled(after, batchSize)
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
function distinct(notifications: readonly Notification[]): Notification[] {
  const byThing = new Map<string, Notification>()
  for (const notification of notifications) {
    const thing = notification.invoice_id ?? notification.customer_id ?? notification.id
    if (!byThing.has(thing)) byThing.set(thing, notification)
  }
  return [...byThing.values()]
}

function readKey(cursor: string | null): InvoiceKey | null {
  const [customer_id, id] = cursor?.split(' ') ?? []
  return customer_id !== undefined && id !== undefined ? { customer_id, id } : null
}
