/**
 * Counts the invoices that lists had to correct though no event had announced the change: events or webhooks were missed.
 *
 * An invoice that a list finds changed waits, since its event may be on its way. An event about it or about its customer takes it
 * out, whichever of the two is applied first. Once the events were read to their end, and the reading began five minutes after the
 * list found the change, every event of that time is visible: what still waits then counts, once.
 */
import type { Logger } from 'pino'
import type { InvoiceKey } from '../../domain/invoice.ts'
import type { Notification } from '../../sources/source.ts'
import type { Correction } from '../../store/connector-store.ts'
import type { WriteStore, WriteTransaction } from '../../store/store.ts'

/** Events may become visible this late. */
export const lateEventsMs = 5 * 60_000

/** Called once a transaction is committed, so that memory follows the store. */
export type AfterCommit = () => void

/** One for each connector. `system` is the one that the figures are stored under. */
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

  /** What a former process found. */
  remember(stored: readonly Correction[]): void {
    for (const correction of stored)
      this.waiting.add(correction, performance.now() - Math.max(0, Date.now() - correction.found_at))
  }

  /** Counts what a list looked at, and keeps what it corrected. Within the transaction that corrects. */
  async note(tx: WriteTransaction, checked: number, corrected: readonly InvoiceKey[]): Promise<void> {
    const found = corrected.map(({ customer_id, id }) => ({ customer_id, id, found_at: Date.now() }))
    // Before the commit: an event that waits for this transaction must find them. What is rolled back is in no store.
    for (const correction of found) this.waiting.add(correction, performance.now())
    if (found.length > 0) await tx.saveCorrections(found)
    if (checked > 0) await tx.addRecheck({ system: this.system, checked, corrected: 0 }, Date.now())
  }

  /** After events were applied. */
  async announce(events: readonly Pick<Notification, 'invoice_id' | 'customer_id'>[]): Promise<void> {
    const some = events.flatMap(event => this.waiting.about(event))
    if (some.length === 0) return
    await this.store.transaction(tx => tx.removeCorrections(some.map(({ id }) => id)))
    this.waiting.remove(some)
  }

  /** After all events were read, in a reading that began at a moment of the monotonic clock. */
  async confirm(tx: WriteTransaction, beganMs: number): Promise<AfterCommit> {
    const some = this.waiting.until(beganMs - lateEventsMs)
    if (some.length === 0) return () => {}
    const ids = some.map(({ id }) => id)
    // One that a list corrected again meanwhile goes on waiting.
    const missed = await tx.removeCorrections(ids, Math.max(...some.map(({ found_at }) => found_at)))
    const { system } = this
    if (missed.length > 0) await tx.addRecheck({ system, checked: 0, corrected: missed.length }, Date.now())
    return () => {
      this.waiting.remove(some)
      for (const { customer_id, id: invoice_id } of missed)
        this.log.warn({ customer_id, invoice_id }, 'an invoice had changed without an event')
    }
  }

  /** When everything is listed for the first time, or after a gap in the events: then no event is missed. */
  async forget(tx: WriteTransaction): Promise<AfterCommit> {
    const all = this.waiting.until(Number.POSITIVE_INFINITY)
    if (all.length > 0) await tx.removeCorrections(all.map(({ id }) => id))
    return () => this.waiting.remove(all)
  }
}

/** Corrections that wait, each with the moment when it was found, by a monotonic clock: a calendar that is set confirms none too early. */
class Unconfirmed {
  private readonly byId = new Map<string, { correction: Correction; foundMs: number }>()

  add(correction: Correction, foundMs: number): void {
    this.byId.set(correction.id, { correction, foundMs })
  }

  /** But for those that were added again since. */
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
