/** Fetches again the invoices that may still change or be deleted, in case an event was missed. */
import { type InvoiceKey, unsettledStatuses } from '../invoice.ts'
import { type Applied, addApplied, nothingApplied } from './apply.ts'
import { readBatches } from './concurrency.ts'
import { listAndCommit } from './list-ranges.ts'
import type { Refetch } from './refetch-invoices.ts'
import type { SyncContext } from './sync-context.ts'

const parallel = 8
const batchSize = 100

/** With a stamp, it does nothing if every such invoice was observed since. */
export function createReread(
  context: SyncContext,
  refetch: Refetch,
): (unlessSince?: number) => Promise<Applied> {
  const { store, streams, names, calls } = context
  return unlessSince =>
    streams.run(names.unsettled, async () => {
      const since = unlessSince ?? calls.nextStamp()
      let total = nothingApplied
      const [left] = await store.readUnsettled(null, 1, since)
      if (left !== undefined) {
        for (const status of unsettledStatuses)
          total = addApplied(total, (await listAndCommit(context, { filter: { status }, parallel })).applied)
        total = addApplied(total, await fetchUnlisted(context, refetch, since))
      }
      await store.transaction(tx => tx.saveSuccess(names.unsettled, Date.now()))
      return total
    })
}

/** Fetches each invoice that is stored as unsettled and was not listed since: it is settled by now, or gone. */
export async function fetchUnlisted(
  { store }: SyncContext,
  refetch: Refetch,
  since: number,
): Promise<Applied> {
  let total = nothingApplied
  const read = (after: InvoiceKey | null, limit: number) => store.readUnsettled(after, limit, since)
  for await (const keys of readBatches(read, batchSize))
    total = addApplied(total, await refetch.fetchEach(keys))
  return total
}
