/** The freshness, which every answer shows, read a few times a second: on Citus it may lie at another node. */
import { setTimeout as sleep } from 'node:timers/promises'

const keepMs = 500
/** A node that does not answer keeps nobody waiting for longer: an older moment is true as well. */
const patienceMs = 250

type ReadFreshness = () => Promise<number | null>

/** To be called before the records are read: they follow their source at least until then. */
export function rememberFreshness(read: ReadFreshness): ReadFreshness {
  let known: { syncedAt: number | null; askedAt: number } | null = null
  let asking: Promise<number | null> | null = null
  let askedAt = 0

  function ask(): Promise<number | null> {
    askedAt = performance.now()
    asking = read()
      .then(syncedAt => {
        known = { syncedAt, askedAt }
        return syncedAt
      })
      .finally(() => {
        asking = null
      })
    // An older one that is known stays in use.
    asking.catch(() => {})
    return asking
  }

  return async () => {
    if (known !== null && performance.now() - known.askedAt < keepMs) return known.syncedAt
    const answer = asking ?? ask()
    if (known === null) return answer
    const { syncedAt } = known
    const waitMs = askedAt + patienceMs - performance.now()
    if (waitMs <= 0) return syncedAt
    return Promise.race([answer.catch(() => syncedAt), sleep(waitMs, syncedAt, { ref: false })])
  }
}
