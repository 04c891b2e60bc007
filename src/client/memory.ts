/** The last answers by path, so that a poll can be answered 304. */
export interface Held {
  etag: string
  data: unknown
}

export function createMemory(limit: number) {
  const answers = new Map<string, Held>()
  return {
    find: (path: string) => answers.get(path),
    /** The one that was read longest ago makes room. */
    keep(path: string, { etag, data }: { etag: string | null; data: unknown }): void {
      answers.delete(path)
      if (etag === null) return
      answers.set(path, { etag, data })
      for (const oldest of answers.keys()) {
        if (answers.size <= limit) return
        answers.delete(oldest)
      }
    },
  }
}
