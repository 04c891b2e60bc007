import { overlappedKind, waitingKind } from '../../store/connector-store.ts'
import { realClocks, remainingSince } from '../schedule.ts'
import { isRefusedKind, noId, type SetAsideKind } from '../set-aside.ts'
import { type Applied, addApplied, nothingApplied } from './apply-answers.ts'
import type { Refetch } from './refetch-invoices.ts'
import type { SyncContext } from './sync-context.ts'

/**
 * Kinds in the order of their retries, with the size of a batch. Refused
 * invoices mostly stay refused and can be many, so their batches are small.
 */
const batches: readonly [kind: SetAsideKind, size: number][] = [
  [overlappedKind, 100],
  [waitingKind, 100],
  ['invoice', 100],
  ['refused', 10],
  ['outdated', 10],
]
/**
 * Time after which the common row of all records without an id is removed, when no list has shown such a record meanwhile. Records without
 * an id cannot be fetched.
 */
const forgetNamelessMs = 3 * 24 * 60 * 60_000

/**
 * Fetches set-aside invoices again. `due`: only invoices that are due. `all`: also
 * invoices that are not due, except refused ones. Resolves with null when there were none.
 */
export async function retrySetAside(
  context: SyncContext,
  refetch: Refetch,
  which: 'due' | 'all',
): Promise<Applied | null> {
  await forgetNameless(context)
  let total: Applied | null = null
  for (const [kind, size] of batches)
    for await (const batch of readBatches(context, kind, size, which))
      total = addApplied(total ?? nothingApplied, await refetch.fetchEach(batch, null))
  return total
}

/** Reads the records tried longest ago first. A record that is set aside again during this retry is not read twice. */
async function* readBatches(
  { source: { system }, store, signal }: SyncContext,
  kind: SetAsideKind,
  size: number,
  which: 'due' | 'all',
) {
  const isEarly = which === 'all' && !isRefusedKind(kind)
  const tried = new Set<string>()
  while (!signal.aborted) {
    const dueAt = isEarly ? Number.MAX_SAFE_INTEGER : Date.now()
    const found = await store.listSetAside(size, system, { kind, dueAt })
    const batch = found.filter(({ id }) => !tried.has(id))
    if (batch.length === 0) return
    for (const { id } of batch) tried.add(id)
    yield batch
    if (isRefusedKind(kind)) return
  }
}

async function forgetNameless({ source: { system }, store }: SyncContext): Promise<void> {
  const nameless = await store.listSetAside(1, system, { kind: 'refused', id: noId })
  const old = nameless.filter(({ last_at }) => remainingSince(last_at, forgetNamelessMs, realClocks) === 0)
  if (old.length > 0) await store.transaction(tx => tx.clearSetAside(old))
}
