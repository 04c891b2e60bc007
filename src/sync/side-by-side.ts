/**
 * Does a piece of work for each item, a few of them side by side. The first failure ends it: no further item is taken up,
 * and it is thrown once those under way have come to their end.
 */
export async function sideBySide<T>(
  items: AsyncIterable<T> | Iterable<T>,
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const running = new Set<Promise<void>>()
  const failures: unknown[] = []
  try {
    for await (const item of items) {
      const piece: Promise<void> = work(item)
        .catch(error => {
          failures.push(error)
        })
        .finally(() => running.delete(piece))
      running.add(piece)
      if (running.size >= atOnce) await Promise.race(running)
      if (failures.length > 0) break
    }
  } finally {
    await Promise.all(running)
  }
  if (failures.length > 0) throw failures[0]
}

/** One after the other, in the order in which they were given. */
export function createTurns(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return work => {
    const done = last.then(work, work)
    last = done.catch(() => {})
    return done
  }
}
