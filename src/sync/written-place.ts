/**
 * What this process last wrote to a store. A store that has less of it went back in time: a former primary that was started again, a
 * replica that was behind when it became the primary, or a backup. From inside they look alike, so nothing is written to any of them.
 */
import type { Lease } from '../store/connector-store.ts'
import { StoreWentBack } from '../store/store.ts'

/** A place of the lease: it grows with each commit. */
export type Place = Pick<Lease, 'life' | 'epoch' | 'beats'>

export class WrittenPlace {
  /** Null before the first commit. */
  private last: Place | null = null

  /** What the store must have, whatever is asked of it from now on. */
  get(): Place | null {
    return this.last
  }

  /** Several commits may be noted in any order: the furthest counts. */
  note(written: Place): void {
    if (this.last === null || !isBefore(written, this.last)) this.last = written
  }
}

/** Throws a `StoreWentBack` when the store has less than was written before it was asked. */
export function checkPlace(found: Place, written: Place | null): void {
  if (written !== null && isBefore(found, written)) throw new StoreWentBack('wrote to it')
}

/** Another life cannot be compared: an operator said that the store was restored. */
export function isBefore(a: Place, b: Place): boolean {
  return a.life === b.life && (a.epoch < b.epoch || (a.epoch === b.epoch && a.beats < b.beats))
}
