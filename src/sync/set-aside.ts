/** Tries again what did not fit. */
import { type Applied, addApplied, nothingApplied } from './apply.ts'
import { eachOf, type Looks } from './looks.ts'
import type { World } from './world.ts'

const batchSize = 100
const atOnce = 16

/** Those that were tried longest ago first; goes on for as long as some of them fit. */
export function createRetry({ source, store, answers, signal }: World, looks: Looks): () => Promise<Applied> {
  const count = async () => {
    const counts = await store.countSetAside()
    return Number(
      counts.find(({ system, kind }) => system === source.system && kind === 'invoice')?.count ?? 0,
    )
  }
  return async () => {
    let total = nothingApplied
    for (let before = await count(); before > 0 && !signal.aborted; ) {
      const aside = await store.listSetAside(batchSize, source.system)
      const invoices = aside.filter(({ kind }) => kind === 'invoice').map(({ id }) => id)
      answers.expect(invoices)
      await eachOf(invoices, atOnce, async id => {
        // Of one that is gone, the platform does not say whose it was.
        const [stored] = await store.findLinkedById(id)
        const applied = await looks.lookAt(id, stored?.customer_id ?? null, 'soon')
        total = addApplied(total, applied)
      })
      const left = await count()
      if (left >= before || invoices.length < batchSize) break
      before = left
    }
    return total
  }
}
