/** Several causes to look at the same thing share one look, which begins after the last of them came. */

interface Slot<Cause, Result> {
  running: Promise<unknown>
  next: { causes: Cause[]; result: Promise<Result> } | null
}

/**
 * Resolves with the result of a look that began after this was called. Only the first who asked for it learns what came
 * of it: the others share it, and `shared` is what they learn.
 */
export function coalesce<Cause, Result>(
  look: (thing: string, causes: readonly Cause[]) => Promise<Result>,
  shared: Result,
): (thing: string, cause: Cause) => Promise<Result> {
  const slots = new Map<string, Slot<Cause, Result>>()

  async function run(thing: string, causes: Cause[]): Promise<Result> {
    const result = look(thing, causes)
    const running = result.catch(() => {})
    const slot: Slot<Cause, Result> = slots.get(thing) ?? { running, next: null }
    slot.running = running
    slot.next = null
    slots.set(thing, slot)
    void running.then(() => {
      if (slot.running === running && slot.next === null) slots.delete(thing)
    })
    return result
  }

  return (thing, cause) => {
    const slot = slots.get(thing)
    if (slot === undefined) return run(thing, [cause])
    if (slot.next !== null) {
      slot.next.causes.push(cause)
      return slot.next.result.then(() => shared)
    }
    const causes = [cause]
    const result = slot.running.then(() => run(thing, causes))
    slot.next = { causes, result }
    return result
  }
}
