/**
 * Holds back losses that come in large numbers: drafts that are gone at the platform, and invoices that lose their documents. A wrong key
 * or a fault of the platform looks the same. Losses stay held back until an operator lets them through, or until the lost records are found
 * again. `src/sync/README.md` lists four other defences.
 */
import type { Logger } from 'pino'
import { type InvoiceKey, keyOf } from '../domain/invoice.ts'
import type { Loss, SetAside, setAsideKinds } from '../store/connector-store.ts'
import type { WriteStore, WriteTransaction } from '../store/store.ts'

export const guardSystem = 'deletion_guard' satisfies keyof typeof setAsideKinds

const allowedInAnyCase = 20
const allowedShare = 0.1
const hourMs = 60 * 60 * 1000

/** Number of losses within an hour that are plausible: a few in any case, or a small share of all records. */
export function plausibleLosses(atRisk: number): number {
  return Math.max(allowedInAnyCase, Math.floor(atRisk * allowedShare))
}

export type DeletionGuard = Awaited<ReturnType<typeof createDeletionGuard>>

/** With `letThrough`, the guard allows the losses that are held back now, but no other implausible losses. */
export async function createDeletionGuard(store: WriteStore, log: Logger, letThrough: boolean) {
  const stored = await store.listSetAside(Number.MAX_SAFE_INTEGER, guardSystem)
  const namesOf = (loss: Loss) => stored.filter(({ kind }) => kind === loss).map(({ id }) => id)
  const through: Record<Loss, ReadonlySet<string>> = {
    deletion: new Set(letThrough ? namesOf('deletion') : []),
    lost_document: new Set(letThrough ? namesOf('lost_document') : []),
  }
  const losses = { deletion: new LossCounter('deletion'), lost_document: new LossCounter('lost_document') }

  async function isPlausible(tx: WriteTransaction, loss: Loss, names: readonly string[]): Promise<boolean> {
    // While losses are held back, all new losses are held back too, even in a new hour. An operator has to decide about them.
    const held = await tx.listSetAsideIds(guardSystem, loss)
    if (held.some(name => !through[loss].has(name))) return false
    return losses[loss].add(tx, names)
  }

  async function hold(tx: WriteTransaction, loss: Loss, names: readonly string[]): Promise<void> {
    const reason = `${reasons[loss]}: more were lost within an hour than is plausible`
    if (losses[loss].isToBeLogged())
      log.error({ loss }, `the deletion guard holds back changes that look wrong. ${advice}`)
    for (const id of names)
      await tx.setAside({ system: guardSystem, kind: loss, id, reason, due_at: null }, Date.now())
  }

  /** Removes the held-back losses of these invoices, because the invoices are not lost or their loss was let through. */
  async function forget(tx: WriteTransaction, loss: Loss, keys: readonly InvoiceKey[]): Promise<void> {
    if (keys.length === 0) return
    const held = await findHeld(tx, loss, keys)
    if (held.length > 0) await tx.clearSetAside(held)
  }

  return {
    forget,
    /** Whether all given losses are allowed. If not, all of them are held back, and the transaction stores that. */
    async allows(tx: WriteTransaction, loss: Loss, keys: readonly InvoiceKey[]): Promise<boolean> {
      const names = keys.map(keyOf)
      // A loss is let through only while it is held back, so only once.
      const held = new Set((await findHeld(tx, loss, keys)).map(({ id }) => id))
      const unexpected = names.filter(name => !(through[loss].has(name) && held.has(name)))
      const isAllowed = unexpected.length === 0 || (await isPlausible(tx, loss, unexpected))
      if (isAllowed) await forget(tx, loss, keys)
      else await hold(tx, loss, names)
      return isAllowed
    },
    /** Invoices whose held-back loss the operator let through. */
    letThrough: (loss: Loss) => [...through[loss]].map(readKey),
    isLetThrough: (loss: Loss, key: InvoiceKey) => through[loss].has(keyOf(key)),
  }
}

async function findHeld(tx: WriteTransaction, loss: Loss, keys: readonly InvoiceKey[]): Promise<SetAside[]> {
  const found = await tx.findSetAside(keys.map(keyOf))
  return found.filter(({ system, kind }) => system === guardSystem && kind === loss)
}

/** Counts the losses of one kind within an hour. A restarted process counts from zero. */
class LossCounter {
  private readonly loss: Loss
  /** Start of the current hour, by a monotonic clock. */
  private beganMs = Number.NEGATIVE_INFINITY
  private names = new Set<string>()
  private atRisk: Promise<number> = Promise.resolve(0)
  private loggedMs = Number.NEGATIVE_INFINITY

  constructor(loss: Loss) {
    this.loss = loss
  }

  /**
   * Adds losses. Returns whether their number is plausible. A loss that
   * is added again counts once, for example in a repeated transaction.
   */
  async add(tx: WriteTransaction, names: readonly string[]): Promise<boolean> {
    if (performance.now() - this.beganMs > hourMs) this.begin(tx)
    for (const name of names) this.names.add(name)
    // The count is taken before the wait, because other transactions may add losses during the wait.
    const count = this.names.size
    return count <= plausibleLosses(await this.atRisk)
  }

  /** Returns true at most once an hour, so that the log does not name every held-back loss. */
  isToBeLogged(): boolean {
    const now = performance.now()
    if (now - this.loggedMs < hourMs) return false
    this.loggedMs = now
    return true
  }

  private begin(tx: WriteTransaction): void {
    this.beganMs = performance.now()
    this.names = new Set()
    this.atRisk = tx.countAtRisk(this.loss)
    // After a failed count of the records, the next call counts again.
    this.atRisk.catch(() => {
      this.beganMs = Number.NEGATIVE_INFINITY
    })
  }
}

export const advice =
  'First check the key and its account. If the losses are correct, stop "fatura sync" and run: fatura sync --once --let-through'

const reasons: Record<Loss, string> = {
  deletion: 'the draft is gone at the payment platform',
  lost_document: 'its document is gone, or its client has another tax ID',
}

export function formatHeld({ deletion, lost_document }: Record<Loss, number>): string | null {
  const parts = [
    deletion > 0 && `${deletion} drafts that are gone at the payment platform are still shown`,
    lost_document > 0 &&
      `${lost_document} invoices keep documents that are gone, or whose client has another tax ID`,
  ].filter(part => part !== false)
  return parts.length === 0 ? null : parts.join(', and ')
}

function readKey(name: string): InvoiceKey {
  const [customer_id = '', id = ''] = name.split(' ')
  return { customer_id, id }
}
