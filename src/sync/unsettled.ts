/** Looks again at what may still change or be deleted, in case an event was missed. */
import { type InvoiceKey, unsettledStatuses } from '../invoice.ts'
import { type Applied, addApplied, nothingApplied } from './apply.ts'
import { listRanges } from './list-ranges.ts'
import { eachOf, type Looks } from './looks.ts'
import { wholeList } from './ranges.ts'
import { succeed } from './streams.ts'
import type { World } from './world.ts'

const parallel = 8
const batchSize = 100
const atOnce = 16

/** With a stamp, it does nothing when everything that may change was looked at since. */
export function createReread(world: World, looks: Looks): (unlessSince?: number) => Promise<Applied> {
  const { store, streams, names, answers } = world
  return unlessSince =>
    streams.run(names.unsettled, async stream => {
      const since = answers.nextStamp()
      let total = nothingApplied
      const [left] = await store.readUnsettled(null, 1, unlessSince ?? since)
      if (left !== undefined) {
        for (const status of unsettledStatuses)
          await listRanges({
            ...world,
            filter: { status },
            ranges: [wholeList],
            parallel,
            async store(pages) {
              total = addApplied(total, await answers.commit(pages))
            },
          })
        total = addApplied(total, await lookAtLeft(world, looks, unlessSince ?? since))
      }
      await store.transaction(succeed(stream, null))
      return total
    })
}

/** What is stored as unsettled and was not seen since is not so any more, or gone: each is asked for alone. */
export async function lookAtLeft({ store }: World, looks: Looks, since: number): Promise<Applied> {
  let total = nothingApplied
  let after: InvoiceKey | null = null
  for (;;) {
    const keys: InvoiceKey[] = await store.readUnsettled(after, batchSize, since)
    await eachOf(keys, atOnce, async ({ id, customer_id }) => {
      const applied = await looks.lookAt(id, customer_id, 'soon')
      total = addApplied(total, applied)
    })
    after = keys.at(-1) ?? null
    if (keys.length < batchSize) return total
  }
}
