/** What an operator must know of the connector, read from the store alone. */
import type { Lease, Loss, Pin, SetAside } from '../store/connector-store.ts'
import type { OperatorStore, Stream } from '../store/store.ts'
import { brakeSystem } from './brake.ts'

/** As many as can be read at a glance. */
const shown = 5

export interface SyncState {
  streams: readonly Stream[]
  pins: readonly Pin[]
  lease: Lease
  /** Records that do not fit: how many, and those that were tried last. */
  setAside: { count: number; newest: readonly SetAside[] }
  /** What the brake holds back. */
  held: Record<Loss, number>
}

export async function readState(store: OperatorStore): Promise<SyncState> {
  const counts = await store.countSetAside()
  const heldOf = (loss: Loss) =>
    counts.find(({ system, kind }) => system === brakeSystem && kind === loss)?.count ?? 0
  const systems = [...new Set(counts.map(({ system }) => system))].filter(system => system !== brakeSystem)
  const newest: SetAside[] = []
  for (const system of systems) newest.push(...(await store.listSetAside(shown, system, true)))
  return {
    streams: await store.listStreams(),
    pins: await store.listPins(),
    lease: await store.readLease(),
    setAside: {
      count: counts.filter(({ system }) => system !== brakeSystem).reduce((sum, { count }) => sum + count, 0),
      newest: newest.sort((a, b) => b.last_at - a.last_at).slice(0, shown),
    },
    held: { deletion: heldOf('deletion'), downgrade: heldOf('downgrade') },
  }
}
