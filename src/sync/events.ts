/** Follows what happened, as the platform's list of events tells it. */
import { type Notification, type NotificationPage, SourceError } from '../sources.ts'
import type { JournalEntry } from '../store/document-store.ts'
import { StoreUnavailable, type Stream } from '../store/store.ts'
import { type Applied, addApplied, nothingApplied } from './apply.ts'
import { eachOf, type HandledEvents, type Looks, tellMerged } from './looks.ts'
import type { World } from './world.ts'

/** Events may become visible a little late; what was read already is not fetched again. */
const overlap = 300
/** How much more than our own clock the platform's may have moved on, in seconds. */
const clockSlack = 60
/** From so many seconds on, a clock that is ahead is reported. */
const reportedAhead = 300
const atOnce = 16

export interface EventsOptions {
  looks: Looks
  handled: HandledEvents
  /** Everything is to be listed again, and events are to be read from this moment on. */
  listAgain(since: number): Promise<void>
}

/** `patience` is how long to wait for the lists of whole customers, in milliseconds; until their end when not given. */
export function followEvents(world: World, options: EventsOptions): (patience?: number) => Promise<Applied> {
  const { source, store, streams, names, log } = world
  // A gap nearly as long as events are kept is closed by listing everything again.
  const longestGap = (source.eventsKeptDays - 1) * 24 * 60 * 60
  const { looks, handled, listAgain } = options
  /** The last success of this process, or its start, by a clock that nobody sets. */
  let lastSuccessMs = performance.now()

  const readPage = (since: number, after: string | null) =>
    source.listNotifications(Math.max(0, since - overlap), after)

  /**
   * A customer's list may be long. The events that tell of others do not wait for it; but until it is done, those that
   * told of it count as not read.
   */
  async function listCustomer(notifications: readonly Notification[]): Promise<Applied> {
    try {
      return await looks.follow(notifications)
    } catch (error) {
      log.error({ err: error }, "listing a customer's invoices failed; trying again")
      return nothingApplied
    }
  }

  /**
   * The platform's clock, as far as it can be believed: one wrong answer must not lead past events that are still to come. It moved on no
   * further than ours since the last success; or an event shows that it did.
   */
  function believe(stream: Stream, { now, notifications }: NotificationPage): number {
    const since = Number(stream.cursor)
    const calendarMs = stream.succeeded_at === null ? 0 : Date.now() - stream.succeeded_at
    const passed = Math.max(0, calendarMs, performance.now() - lastSuccessMs) / 1_000
    const newest = Math.max(...notifications.map(({ created }) => created), 0)
    return Math.min(now, Math.max(Math.floor(since + passed) + clockSlack, newest))
  }

  /** The records follow the platform up to when the first page was asked for, not to when the last was applied. */
  async function readEvents(
    stream: Stream,
    first: NotificationPage,
    askedAt: number,
    patience: number | undefined,
  ): Promise<Applied> {
    const since = Number(stream.cursor)
    const now = believe(stream, first)
    const starts = new Set<string>()
    /** The invoices that were looked at, by the newest event: what later pages tell of them happened before. */
    const seen = new Map<string, string>()
    const ofCustomers: Notification[] = []
    let total = nothingApplied
    const add = (applied: Applied) => {
      total = addApplied(total, applied)
    }
    for (let page = first; ; page = await readPage(since, page.next)) {
      const fresh = page.notifications.filter(({ id }) => !handled.has(id))
      const byInvoice = Map.groupBy(fresh, ({ invoice_id }) => invoice_id)
      ofCustomers.push(...(byInvoice.get(null) ?? []))
      byInvoice.delete(null)
      await eachOf([...byInvoice], atOnce, async ([invoiceId, notifications]) => {
        const newest = seen.get(String(invoiceId))
        if (newest === undefined) add(await looks.follow(notifications))
        else await keepEntries(tellMerged(newest, notifications))
        for (const { id } of notifications) handled.add(id)
        seen.set(String(invoiceId), newest ?? String(notifications[0]?.id))
      })
      if (page.next === null) break
      if (starts.has(page.next)) throw new SourceError('failed', 'the pages of the events lead in a circle')
      starts.add(page.next)
    }
    const byCustomer = Map.groupBy(ofCustomers, ({ customer_id }) => customer_id)
    const lists = [...byCustomer.values()].map(told => listCustomer(told).then(add))
    await within(Promise.all(lists), patience)
    if (ofCustomers.every(({ id }) => handled.has(id))) {
      const ahead = first.now - now
      const error =
        ahead > reportedAhead
          ? `${source.name} says a time that is ${ahead} s ahead of what it can be: it is not believed, and events are read as before`
          : (source.lacks?.() ?? null)
      if (error !== null && error !== stream.error) log.warn(error)
      const reported = { failed_at: error === null ? null : askedAt, error }
      await store.transaction(tx =>
        tx.saveStream({
          ...stream,
          cursor: String(Math.max(since, now)),
          succeeded_at: askedAt,
          ...reported,
        }),
      )
      lastSuccessMs = performance.now()
    } else if (patience === undefined)
      throw new SourceError('failed', "a customer's invoices could not be listed")
    return total
  }

  /** A part of the store that is out of reach keeps no event back for what the journal tells of it. */
  async function keepEntries(entries: readonly JournalEntry[]): Promise<void> {
    await store
      .transaction(tx => tx.saveEntries(entries))
      .catch(error => {
        if (!(error instanceof StoreUnavailable)) throw error
      })
  }

  return patience =>
    streams.run(names.events, async stream => {
      // Until the list has begun, there is no moment to go on from: it will tell everything.
      if (stream.cursor === null) return nothingApplied
      const since = Number(stream.cursor)
      const askedAt = Date.now()
      const page = await readPage(since, null)
      const now = believe(stream, page)
      const gap = now - since
      if (gap <= longestGap) return readEvents(stream, page, askedAt, patience)
      log.warn(
        { days: Math.round(gap / 86_400) },
        `events reach back ${source.eventsKeptDays} days only; listing everything again`,
      )
      await listAgain(now)
      return nothingApplied
    })
}

async function within(work: Promise<unknown>, milliseconds: number | undefined): Promise<void> {
  if (milliseconds === undefined) return void (await work)
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, milliseconds)
  await Promise.race([work, promise])
  clearTimeout(timer)
}
