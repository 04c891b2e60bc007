/** What an operator must know of the connector, read from the store alone. */
import type { Lease, Loss, Pin, SetAside } from '../store/connector-store.ts'
import type { OperatorStore, Stream } from '../store/store.ts'
import { brakeSystem } from './brake.ts'
import { isRefusedKind, type Refused, readRefused } from './refusals.ts'

/** As many as can be read at a glance. */
const shown = 5

export interface SyncState {
  streams: readonly Stream[]
  pins: readonly Pin[]
  lease: Lease
  /** Records that do not fit: how many, and those that were tried last. */
  setAside: { count: number; newest: readonly SetAside[] }
  refused: readonly Refused[]
  /** What the brake holds back. */
  held: Record<Loss, number>
}

export async function readState(store: OperatorStore): Promise<SyncState> {
  const counts = await store.countSetAside()
  const heldOf = (loss: Loss) =>
    counts.find(({ system, kind }) => system === brakeSystem && kind === loss)?.count ?? 0
  const unfit = counts.filter(({ system, kind }) => system !== brakeSystem && !isRefusedKind(kind))
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
