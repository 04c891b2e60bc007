/** The state of the connector for operators, read from the store alone. */
import { invoiceStatuses } from '../invoice.ts'
import {
  type Loss,
  type RefusalReason,
  type RefusedKind,
  refusedKinds,
  type SetAside,
  type SetAsideCount,
} from '../store/connector-store.ts'
import type { OperatorStore } from '../store/store.ts'
import { noId } from './apply.ts'
import { guardSystem } from './deletion-guard.ts'

const shown = 5

export type SyncState = Awaited<ReturnType<typeof readState>>

export async function readState(store: OperatorStore) {
  const counts = await store.countSetAside()
  const heldOf = (loss: Loss) =>
    counts.find(({ system, kind }) => system === guardSystem && kind === loss)?.count ?? 0
  const unfit = counts.filter(({ system, kind }) => system !== guardSystem && !isRefusedKind(kind))
  const newest: SetAside[] = []
  for (const { system, kind } of unfit)
    newest.push(...(await store.listSetAside(shown, system, { kind, newestFirst: true })))
  return {
    streams: await store.listStreams(),
    pins: await store.listPins(),
    lease: await store.readLease(),
    /** Records that do not fit: their number, and those tried last. */
    setAside: {
      count: unfit.reduce((sum, { count }) => sum + count, 0),
      newest: newest.sort((a, b) => b.last_at - a.last_at).slice(0, shown),
    },
    refused: await readRefused(store, counts),
    held: { deletion: heldOf('deletion'), downgrade: heldOf('downgrade') },
  }
}

const examplesShown = 3

/** `kind`: not stored at all, or stored as it was before. */
export type Refused = Awaited<ReturnType<typeof readRefused>>[number]

async function readRefused(store: OperatorStore, counts: readonly SetAsideCount[]) {
  const refused = []
  for (const { system, kind, reason, count } of counts) {
    if (!isRefusedKind(kind) || reason === null) continue
    const newest = await store.listSetAside(examplesShown, system, { kind, reason, newestFirst: true })
    const examples = newest.map(({ id }) => id).filter(id => id !== noId)
    refused.push({ kind, reason, count, examples })
  }
  return refused
}

export function isRefusedKind(kind: string): kind is RefusedKind {
  return (refusedKinds as readonly string[]).includes(kind)
}

const words: Record<RefusalReason, string> = {
  no_customer: 'no customer',
  invalid_customer: 'the customer ID is not cus_ and letters and digits',
  unknown_status: `the status is not ${invoiceStatuses.slice(0, -1).join(', ')} or ${invoiceStatuses.at(-1)}`,
  preview: 'the ID is not in_ and letters and digits',
  missing: 'not found any more, though only a draft can be deleted',
  no_id: 'no ID',
}

/** In words; a reason written by a newer version is returned as it is. */
export function formatReason(reason: string): string {
  return words[reason as RefusalReason] ?? reason
}

/** As in "7: no customer (in_1, in_2, in_3 and others)". */
export function formatRefused({ reason, count, examples }: Refused): string {
  const others = count > examples.length ? ' and others' : ''
  const named = examples.length === 0 ? '' : ` (${examples.join(', ')}${others})`
  return `${count}: ${formatReason(reason)}${named}`
}
