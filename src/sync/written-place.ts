/**
 * Remembers the last commit of this process. A store that lacks this commit went back in time. The
 * cause is a former primary that was started again, a replica that was behind when it became the
 * primary, or a backup. The cases look alike from inside, so nothing is written to such a store.
 */
import type { Lease } from '../store/connector-store.ts'
import { StoreWentBack } from '../store/store.ts'

/** A position in the life of a store, held by the lease. It grows with each commit. */
export type LeasePosition = Pick<Lease, 'life' | 'epoch' | 'beats'>

export class WrittenPlace {
  /** Null before the first commit of this process. */
  private last: LeasePosition | null = null

  /** Returns the last commit. Every later answer of the store must include it. */
  get(): LeasePosition | null {
    return this.last
  }

  /** Commits may be recorded in any order. The latest one counts. */
  record(written: LeasePosition): void {
    if (this.last === null || !isBefore(written, this.last)) this.last = written
  }
}

/** Throws a `StoreWentBack` when the store lacks a commit that was made before the store was read. */
export function checkPosition(found: LeasePosition, written: LeasePosition | null): void {
  if (written !== null && isBefore(found, written)) throw new StoreWentBack('wrote to it')
}

/**
 * Whether `a` is older than `b`. Positions of different lives are not
 * compared, because an operator declared that the store was restored.
 */
export function isBefore(a: LeasePosition, b: LeasePosition): boolean {
  return a.life === b.life && (a.epoch < b.epoch || (a.epoch === b.epoch && a.beats < b.beats))
}
