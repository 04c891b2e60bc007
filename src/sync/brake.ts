/**
 * Holds back what is likelier a fault than a fact: many drafts that vanish at once, many invoices that lose their documents
 * at once. Everything else goes on. What is held back stays as it was until somebody lets it through, or until it turns
 * out to be there.
 */
import type { Logger } from 'pino'
import type { InvoiceKey } from '../invoice.ts'
import type { Loss } from '../store/connector-store.ts'
import type { WriteStore, WriteTransaction } from '../store/store.ts'

/** What is held back is set aside under this name. */
export const brakeSystem = 'brake'

/** How many may go within the span whatever the share is, and which share of what there is. */
const freely = 20
const share = 0.1
const span = 60 * 60 * 1000

export interface Brake {
  /** Whether all of these may go. Otherwise they are held back, which is stored with the transaction. */
  allows(tx: WriteTransaction, loss: Loss, keys: readonly InvoiceKey[]): Promise<boolean>
  /** They are there: nothing of them is to be held back any more. */
  forget(tx: WriteTransaction, loss: Loss, keys: readonly InvoiceKey[]): Promise<void>
  /** Those held back, as far as they may go now. */
  released(loss: Loss): readonly InvoiceKey[]
  held(loss: Loss): number
}

/** For whoever looks at a few records of its own account, such as a test. */
export const noBrake: Brake = {
  allows: async () => true,
  forget: async () => {},
  released: () => [],
  held: () => 0,
}

interface State {
  held: Set<string>
  released: Set<string>
  /** By a clock that is never set. */
  since: number
  done: number
  /** Asked for once a span: whoever comes meanwhile waits for the same answer. */
  limit: Promise<number>
}

/** With `letThrough`, what is held back by now may go, and nothing else that is implausible. */
export async function createBrake(store: WriteStore, log: Logger, letThrough: boolean): Promise<Brake> {
  const states: Record<Loss, State> = { deletion: createState(), downgrade: createState() }
  for (const { kind, id } of await store.listSetAside(Number.MAX_SAFE_INTEGER, brakeSystem)) {
    const state = states[kind as Loss]
    ;(letThrough ? state.released : state.held).add(id)
  }

  async function isPlausible(tx: WriteTransaction, loss: Loss, count: number): Promise<boolean> {
    const state = states[loss]
    // Once something is held back, somebody has to look: the next hour does not let it through.
    if (state.held.size > 0) return false
    if (performance.now() - state.since > span)
      Object.assign(state, { since: performance.now(), done: 0, limit: findLimit(tx, loss) })
    // Several transactions may ask at once: each has its own place in the count, taken before anything is waited for.
    state.done += count
    const place = state.done
    const limit = await state.limit
    if (place <= limit) return true
    log.error({ loss, limit }, `the brake holds back changes that look wrong: ${advice}`)
    return false
  }

  function findLimit(tx: WriteTransaction, loss: Loss): Promise<number> {
    const limit = tx.countAtRisk(loss).then(count => Math.max(freely, Math.floor(count * share)))
    // Whoever comes next asks again.
    limit.catch(() => Object.assign(states[loss], { since: Number.NEGATIVE_INFINITY }))
    return limit
  }

  const brake: Brake = {
    async allows(tx, loss, keys) {
      const state = states[loss]
      const names = keys.map(nameOf)
      const unexpected = names.filter(name => !state.released.has(name))
      if (unexpected.length === 0 || (await isPlausible(tx, loss, unexpected.length))) {
        await brake.forget(tx, loss, keys)
        return true
      }
      const reason = `${reasons[loss]}: more than ${(await state.limit) || 'was plausible'} within an hour`
      for (const id of names) {
        await tx.setAside({ system: brakeSystem, kind: loss, id, reason }, Date.now())
        state.held.add(id)
      }
      return false
    },
    async forget(tx, loss, keys) {
      const { held, released } = states[loss]
      if (held.size === 0 && released.size === 0) return
      const names = keys.map(nameOf).filter(name => held.has(name) || released.has(name))
      await tx.clearSetAside(names.map(id => ({ system: brakeSystem, kind: loss, id })))
      for (const name of names) {
        held.delete(name)
        released.delete(name)
      }
    },
    released: loss => [...states[loss].released].map(readName),
    held: loss => states[loss].held.size,
  }
  return brake
}

export const advice = 'look with fatura status, and let it through with fatura sync --once --let-through'

const reasons: Record<Loss, string> = {
  deletion: 'the draft is gone at the payment platform',
  downgrade: 'its document is not found any more',
}

/** In words; null when nothing is held back. */
export function tellHeld(held: Record<Loss, number>): string | null {
  const told = [
    held.deletion > 0 ? `${held.deletion} drafts that are gone at the payment platform are still shown` : [],
    held.downgrade > 0 ? `${held.downgrade} invoices keep documents that are not found any more` : [],
  ].flat()
  return told.length === 0 ? null : told.join('; ')
}

function createState(): State {
  return {
    held: new Set(),
    released: new Set(),
    since: Number.NEGATIVE_INFINITY,
    done: 0,
    limit: Promise.resolve(0),
  }
}

function nameOf({ customer_id, id }: InvoiceKey): string {
  return `${customer_id} ${id}`
}

function readName(name: string): InvoiceKey {
  const [customer_id = '', id = ''] = name.split(' ')
  return { customer_id, id }
}
