/**
 * Counts the invoices that lists had to correct although no event had announced the change. Events or webhooks were then missed.
 *
 * A corrected invoice waits first, since its event may still arrive. An event about the invoice or about its customer removes it, whichever
 * of the two is applied first. An invoice that still waits is counted once, when all events were read again. This reading must begin at
 * least five minutes after the correction. By then every event of that time is visible.
 */
import type { Logger } from 'pino'
import type { InvoiceKey } from '../../domain/invoice.ts'
import type { Notification } from '../../sources/source.ts'
import type { Correction } from '../../store/connector-store.ts'
import type { WriteStore, WriteTransaction } from '../../store/store.ts'

/** Time after which an event is visible at the latest, in milliseconds. */
export const lateEventsMs = 5 * 60_000

/** Must be called once the transaction is committed. It repeats the transaction's changes in memory. */
export type AfterCommit = () => void

/** Opens the corrections of one connector. `system`: the system under which the counts are stored. */
export async function openCorrections(store: WriteStore, system: string, log: Logger): Promise<Corrections> {
  const corrections = new Corrections(store, system, log)
  corrections.remember(await store.listCorrections())
  return corrections
}

export class Corrections {
  private readonly store: WriteStore
  private readonly system: string
  private readonly log: Logger
  private readonly waiting = new Unconfirmed()

  constructor(store: WriteStore, system: string, log: Logger) {
    this.store = store
    this.system = system
    this.log = log
  }

  /** Adds the corrections that an earlier process stored. */
  remember(stored: readonly Correction[]): void {
    for (const correction of stored)
      this.waiting.add(correction, performance.now() - Math.max(0, Date.now() - correction.found_at))
  }

  /** Counts the invoices that a list checked, and stores its corrections in the same transaction. */
  async record(tx: WriteTransaction, checked: number, corrected: readonly InvoiceKey[]): Promise<void> {
    const found = corrected.map(({ customer_id, id }) => ({ customer_id, id, found_at: Date.now() }))
    // Corrections go into memory before the commit, because an event that waits for this transaction looks for them there.
    // Only corrections in the store count, so one that is rolled back does no harm.
    for (const correction of found) this.waiting.add(correction, performance.now())
    if (found.length > 0) await tx.saveCorrections(found)
    if (checked > 0) await tx.addRecheck({ system: this.system, checked, corrected: 0 }, Date.now())
  }

  /** Removes the corrections that these events announce. Called after the events were applied. */
  async announce(events: readonly Pick<Notification, 'invoice_id' | 'customer_id'>[]): Promise<void> {
    const some = events.flatMap(event => this.waiting.about(event))
    if (some.length === 0) return
    await this.store.transaction(tx => tx.removeCorrections(some.map(({ id }) => id)))
    this.waiting.remove(some)
  }

  /**
   * Counts corrections that no event announced. Called after all events
   * were read. `beganMs`: beginning of the reading, by the monotonic clock.
   */
  async confirm(tx: WriteTransaction, beganMs: number): Promise<AfterCommit> {
    const some = this.waiting.until(beganMs - lateEventsMs)
    if (some.length === 0) return () => {}
    const ids = some.map(({ id }) => id)
    // A correction that a list made again meanwhile continues to wait.
    const missed = await tx.removeCorrections(ids, Math.max(...some.map(({ found_at }) => found_at)))
    const { system } = this
    if (missed.length > 0) await tx.addRecheck({ system, checked: 0, corrected: missed.length }, Date.now())
    return () => {
      this.waiting.remove(some)
      for (const { customer_id, id: invoice_id } of missed)
        this.log.warn({ customer_id, invoice_id }, 'an invoice had changed without an event')
    }
  }

  /** Removes all corrections. Called after the first full list, and after a gap in the events, because no event counts as missed then. */
  async forget(tx: WriteTransaction): Promise<AfterCommit> {
    const all = this.waiting.until(Number.POSITIVE_INFINITY)
    if (all.length > 0) await tx.removeCorrections(all.map(({ id }) => id))
    return () => this.waiting.remove(all)
  }
}

/**
 * Corrections that wait for their event. Each has its time by a monotonic clock,
 * because a calendar clock that is set forward would count a correction too early.
 */
class Unconfirmed {
  private readonly byId = new Map<string, { correction: Correction; foundMs: number }>()

  add(correction: Correction, foundMs: number): void {
    this.byId.set(correction.id, { correction, foundMs })
  }

  /** Removes corrections, except corrections that were added again meanwhile. */
  remove(corrections: readonly Correction[]): void {
    for (const correction of corrections)
      if (this.byId.get(correction.id)?.correction === correction) this.byId.delete(correction.id)
  }

  until(moment: number): Correction[] {
    return [...this.byId.values()]
      .filter(({ foundMs }) => foundMs <= moment)
      .map(({ correction }) => correction)
  }

  about({ invoice_id, customer_id }: Pick<Notification, 'invoice_id' | 'customer_id'>): Correction[] {
    if (invoice_id !== null) {
      const found = this.byId.get(invoice_id)
      return found === undefined ? [] : [found.correction]
    }
    return this.until(Number.POSITIVE_INFINITY).filter(each => each.customer_id === customer_id)
  }
}
