/** Holds back many drafts or documents that disappear at once, until an operator lets the changes through, or they are found again. */
import type { Logger } from 'pino'
import { type InvoiceKey, keyOf } from '../invoice.ts'
import type { Loss, setAsideKinds } from '../store/connector-store.ts'
import type { WriteStore, WriteTransaction } from '../store/store.ts'

/** The system that held-back changes are stored under. */
export const guardSystem = 'deletion_guard' satisfies keyof typeof setAsideKinds

/** Losses allowed within the span: this number, or this share of all. */
const freely = 20
const share = 0.1
const spanMs = 60 * 60 * 1000

export type DeletionGuard = Awaited<ReturnType<typeof createDeletionGuard>>

export const noGuard: DeletionGuard = {
  allows: async () => true,
  forget: async () => {},
  released: () => [],
  held: () => 0,
}

/** With `letThrough`, the losses that are held back by now are allowed, and no other implausible ones. */
export async function createDeletionGuard(store: WriteStore, log: Logger, letThrough: boolean) {
  const states = { deletion: createState(), downgrade: createState() } satisfies Record<Loss, unknown>
  for (const { kind, id } of await store.listSetAside(Number.MAX_SAFE_INTEGER, guardSystem)) {
    const state = states[kind as Loss]
    for (const known of [state.stored, letThrough ? state.released : state.held]) known.add(id)
  }

  async function isPlausible(tx: WriteTransaction, loss: Loss, names: readonly string[]): Promise<boolean> {
    const state = states[loss]
    // Once something is held back, an operator decides: the next hour does not let it through.
    if (state.held.size > 0) return false
    if (performance.now() - state.since > spanMs)
      Object.assign(state, { since: performance.now(), done: new Set(), limit: findLimit(tx, loss) })
    // Several transactions may ask at once: each takes its place in the count before it waits, and one that is done again has it already.
    for (const name of names) state.done.add(name)
    const place = state.done.size
    const limit = await state.limit
    if (place <= limit) return true
    log.error({ loss, limit }, `the deletion guard holds back changes that look wrong: ${advice}`)
    return false
  }

  function findLimit(tx: WriteTransaction, loss: Loss): Promise<number> {
    const limit = tx.countAtRisk(loss).then(count => Math.max(freely, Math.floor(count * share)))
    // After a failure, the next call counts again.
    limit.catch(() => Object.assign(states[loss], { since: Number.NEGATIVE_INFINITY }))
    return limit
  }

  async function forget(tx: WriteTransaction, loss: Loss, keys: readonly InvoiceKey[]): Promise<void> {
    const { stored, held, released } = states[loss]
    const names = keys.map(keyOf).filter(name => stored.has(name))
    if (names.length === 0) return
    await tx.clearSetAside(names.map(id => ({ system: guardSystem, kind: loss, id })))
    for (const known of [stored, held, released])
      for (const name of names) tx.afterCommit(() => known.delete(name))
  }

  return {
    forget,
    /** Whether all of these losses are allowed. Otherwise all are held back, which is stored with the transaction. */
    async allows(tx: WriteTransaction, loss: Loss, keys: readonly InvoiceKey[]): Promise<boolean> {
      const state = states[loss]
      const names = keys.map(keyOf)
      const unexpected = names.filter(name => !state.released.has(name))
      if (unexpected.length === 0 || (await isPlausible(tx, loss, unexpected))) {
        await forget(tx, loss, keys)
        return true
      }
      const reason = `${reasons[loss]}: more than ${(await state.limit) || 'was plausible'} within an hour`
      for (const id of names) {
        await tx.setAside({ system: guardSystem, kind: loss, id, reason }, Date.now())
        state.stored.add(id)
        tx.afterCommit(() => state.held.add(id))
      }
      return false
    },
    /** Held-back invoices whose loss was let through. */
    released: (loss: Loss) => [...states[loss].released].map(readKey),
    held: (loss: Loss) => states[loss].held.size,
  }
}

export const advice = 'look with fatura status, and let it through with fatura sync --once --let-through'

const reasons: Record<Loss, string> = {
  deletion: 'the draft is gone at the payment platform',
  downgrade: 'its document is gone, or its client has another tax ID',
}

export function formatHeld({ deletion, downgrade }: Record<Loss, number>): string | null {
  const parts = [
    deletion > 0 && `${deletion} drafts that are gone at the payment platform are still shown`,
    downgrade > 0 && `${downgrade} invoices keep documents that are gone, or whose client has another tax ID`,
  ].filter(part => part !== false)
  return parts.length === 0 ? null : parts.join('; ')
}

function createState() {
  return {
    /** All that may be stored as held back, by a transaction under way as well. */
    stored: new Set<string>(),
    held: new Set<string>(),
    released: new Set<string>(),
    /** The beginning of the span, by a monotonic clock. */
    since: Number.NEGATIVE_INFINITY,
    done: new Set<string>(),
    /** Counted once a span. */
    limit: Promise.resolve(0),
  }
}

function readKey(name: string): InvoiceKey {
  const [customer_id = '', id = ''] = name.split(' ')
  return { customer_id, id }
}
