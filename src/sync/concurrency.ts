/**
 * Works on at most `atOnce` items at a time. After a failure no further
 * item is started. The failure is thrown when the running items have ended.
 */
export async function forEachConcurrently<T>(
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

export function createQueue(): <T>(task: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return task => {
    const done = last.then(task, task)
    last = done.catch(() => {})
    return done
  }
}

/**
 * Merges calls for the same key. The first call begins at once. Calls that arrive while it
 * runs share one later call: the first of them gets its result, and the others get `shared`.
 */
export function coalesce<Cause, Result>(
  call: (key: string, causes: readonly Cause[]) => Promise<Result>,
  shared: Result,
): (key: string, cause: Cause) => Promise<Result> {
  const ends = new Map<string, Promise<unknown>>()
  const waiting = new Map<string, { causes: Cause[]; result: Promise<Result> }>()
  return (key, cause) => {
    const joined = waiting.get(key)
    if (joined !== undefined) {
      joined.causes.push(cause)
      return joined.result.then(() => shared)
    }
    const causes = [cause]
    const running = ends.get(key)
    const result =
      running?.then(() => {
        waiting.delete(key)
        return call(key, causes)
      }) ?? call(key, causes)
    if (running !== undefined) waiting.set(key, { causes, result })
    const end: Promise<unknown> = result
      .catch(() => {})
      .finally(() => ends.get(key) === end && ends.delete(key))
    ends.set(key, end)
    return result
  }
}

/** Reads rows in batches, in the order of their keys. A row that changes meanwhile is not read twice. */
export async function* readBatches<T>(read: (after: T | null, limit: number) => Promise<T[]>, size = 500) {
  let after: T | null = null
  for (;;) {
    const batch = await read(after, size)
    yield batch
    if (batch.length < size) return
    after = batch.at(-1) ?? null
  }
}
