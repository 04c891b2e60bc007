/** Ids ordered by creation time and then by id. Stripe's lists read them from the end. */

interface Entry {
  id: string
  created: number
}

export interface OrderedIds {
  readonly length: number
  add(entry: Entry): void
  remove(entry: Entry): void
  /** Index of the entry, or the index at which it would be inserted. */
  positionOf(entry: Entry): number
  at(index: number): string
}

export function createOrderedIds(): OrderedIds {
  const entries: Entry[] = []
  const positionOf = ({ id, created }: Entry): number => {
    let low = 0
    let high = entries.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const entry = entries[middle] as Entry
      if (entry.created < created || (entry.created === created && entry.id < id)) low = middle + 1
      else high = middle
    }
    return low
  }
  return {
    get length() {
      return entries.length
    },
    add({ id, created }) {
      entries.splice(positionOf({ id, created }), 0, { id, created })
    },
    remove(entry) {
      const index = positionOf(entry)
      if (entries[index]?.id === entry.id) entries.splice(index, 1)
    },
    positionOf,
    at: index => entries[index]?.id ?? '',
  }
}
