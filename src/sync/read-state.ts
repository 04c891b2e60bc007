/** The state of the connector for operators, read from the store alone. */
import type { Lease, Loss, Pin, SetAside } from '../store/connector-store.ts'
import type { OperatorStore, Stream } from '../store/store.ts'
import { guardSystem } from './deletion-guard.ts'
import { isRefusedKind, type Refused, readRefused } from './refusals.ts'

const shown = 5

export interface SyncState {
  streams: readonly Stream[]
  pins: readonly Pin[]
  lease: Lease
  /** Records that do not fit: their number, and those tried last. */
  setAside: { count: number; newest: readonly SetAside[] }
  refused: readonly Refused[]
  /** Changes that the deletion guard holds back. */
  held: Record<Loss, number>
}

export async function readState(store: OperatorStore): Promise<SyncState> {
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
    setAside: {
      count: unfit.reduce((sum, { count }) => sum + count, 0),
      newest: newest.sort((a, b) => b.last_at - a.last_at).slice(0, shown),
    },
    refused: await readRefused(store, counts),
    held: { deletion: heldOf('deletion'), downgrade: heldOf('downgrade') },
  }
}
