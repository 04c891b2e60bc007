/** Tries again what did not fit, what was refused and not seen for a while, and what waits for a part of the store. */
import { refusedKinds, type SetAside, waitingKind } from '../store/connector-store.ts'
import { type Applied, addApplied, nothingApplied } from './apply.ts'
import { eachOf, type Looks } from './looks.ts'
import { noId } from './refusals.ts'
import type { World } from './world.ts'

const batchSize = 100
const atOnce = 16

/** What is refused mostly stays so, and every list of everything shows it: it is asked for alone so long after. */
const refusedAgainMs = 60 * 60_000
/** A record without an id cannot be asked for: it is forgotten once no list held one for so long. */
const forgetNamelessMs = 3 * 24 * 60 * 60_000

/** Each resolves with null when there is nothing to try. */
export interface Retry {
  /** What waits for a part of the store. */
  tryWaiting(): Promise<Applied | null>
  /** What did not fit, and what was refused. */
  tryOthers(): Promise<Applied | null>
}

export function createRetry({ source: { system }, store, answers, signal }: World, looks: Looks): Retry {
  async function tryAgain(records: readonly SetAside[]): Promise<Applied> {
    let total = nothingApplied
    answers.expect(records)
    await eachOf(records, atOnce, async ({ id }) => {
      // Of one that is gone, the platform does not say whose it was.
      const [stored] = await store.findLinkedById(id)
      const applied = await looks.lookAt(id, stored?.customer_id ?? null, 'soon')
      total = addApplied(total, applied)
    })
    return total
  }

  const count = async (kind: string) => {
    const counts = await store.countSetAside()
    return Number(counts.find(each => each.system === system && each.kind === kind)?.count ?? 0)
  }

  /** Those that were tried longest ago first; goes on for as long as some of them fit. */
  async function* tryAll(kind: string): AsyncGenerator<Applied> {
    for (let before = await count(kind); before > 0 && !signal.aborted; ) {
      const invoices = await store.listSetAside(batchSize, system, { kind })
      yield await tryAgain(invoices)
      const left = await count(kind)
      if (left >= before || invoices.length < batchSize) break
      before = left
    }
  }

  /** At most one batch of each kind. */
  async function* tryRefused(): AsyncGenerator<Applied> {
    for (const kind of refusedKinds) {
      const ageMs = ({ last_at }: SetAside) => Date.now() - last_at
      const oldest = await store.listSetAside(batchSize, system, { kind })
      const due = oldest.filter(record => record.id !== noId && ageMs(record) > refusedAgainMs)
      if (due.length > 0) yield await tryAgain(due)
      const forgotten = oldest.filter(record => record.id === noId && ageMs(record) > forgetNamelessMs)
      if (forgotten.length > 0) await store.transaction(tx => tx.clearSetAside(forgotten))
    }
  }

  async function sum(...all: AsyncGenerator<Applied>[]): Promise<Applied | null> {
    let total: Applied | null = null
    for (const tries of all)
      for await (const applied of tries) total = addApplied(total ?? nothingApplied, applied)
    return total
  }

  return {
    tryWaiting: () => sum(tryAll(waitingKind)),
    tryOthers: () => sum(tryAll('invoice'), tryRefused()),
  }
}
