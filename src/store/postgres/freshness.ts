/** The freshness, which every answer shows, read a few times a second: on Citus it may lie at another node. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Freshness } from '../store.ts'

const keepMs = 500
/** A node that does not answer keeps nobody waiting for longer: an older moment is true as well. */
const patienceMs = 250

type ReadFreshness = () => Promise<Freshness>

/** To be called before the records are read: they follow their source at least until then. */
export function rememberFreshness(read: ReadFreshness): ReadFreshness {
  let known: { fresh: Freshness; askedAt: number } | null = null
  let asking: Promise<Freshness> | null = null
  let askedAt = 0

  function ask(): Promise<Freshness> {
    askedAt = performance.now()
    asking = read()
      .then(fresh => {
        known = { fresh, askedAt }
        return fresh
      })
      .finally(() => {
        asking = null
      })
    // An older one that is known stays in use.
    asking.catch(() => {})
    return asking
  }

  return async () => {
    if (known !== null && performance.now() - known.askedAt < keepMs) return known.fresh
    const answer = asking ?? ask()
    if (known === null) return answer
    const { fresh } = known
    const waitMs = askedAt + patienceMs - performance.now()
    if (waitMs <= 0) return fresh
    return Promise.race([answer.catch(() => fresh), sleep(waitMs, fresh, { ref: false })])
  }
}
