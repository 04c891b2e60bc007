/**
 * Reads up to which time the records are known to match their sources (the freshness). Answers share a read of it for half a second,
 * because on Citus it may lie at another node.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Freshness, StoreWentBack } from '../store.ts'

const keepMs = 500
/**
 * Longest wait in milliseconds for a new freshness. After this time the older one is used. It is still true, because records only become
 * fresher.
 */
const patienceMs = 250

export interface FreshnessRow extends Freshness {
  /** Position of the feed's end. */
  place: number
  /** True for a standby, which may be behind another server. */
  is_standby: boolean
}

type Read<Row> = () => Promise<Row>

/**
 * Returns a function that shares one read of the freshness among answers. It must be called before the records are read. The records are
 * then at least as fresh as the returned freshness.
 */
export function rememberFreshness(read: Read<FreshnessRow>): Read<Freshness> {
  const readLater = refuseOlder(read)
  let known: { fresh: Freshness; askedAt: number } | null = null
  let asking: Promise<Freshness> | null = null
  let askedAt = 0

  function ask(): Promise<Freshness> {
    askedAt = performance.now()
    asking = readLater()
      .then(fresh => {
        known = { fresh, askedAt }
        return fresh
      })
      .catch(error => {
        // Any failure other than `StoreWentBack` leaves the known freshness in use.
        if (error instanceof StoreWentBack) known = null
        throw error
      })
      .finally(() => {
        asking = null
      })
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
    const unlessOlder = answer.catch(error => {
      if (error instanceof StoreWentBack) throw error
      return fresh
    })
    return Promise.race([unlessOlder, sleep(waitMs, fresh, { ref: false })])
  }
}

/**
 * Rejects with `StoreWentBack` when the feed ends earlier than in a former answer. The server then holds an older state, for example a
 * restored backup. A standby may lag behind, so its feed may end earlier.
 */
function refuseOlder(read: Read<FreshnessRow>): Read<Freshness> {
  let furthest: Pick<FreshnessRow, 'life' | 'place'> | null = null
  return async () => {
    const { place, is_standby, ...fresh } = await read()
    const before = furthest?.life === fresh.life ? furthest.place : 0
    if (place < before && !is_standby) throw new StoreWentBack('read from it')
    furthest = { life: fresh.life, place: Math.max(place, before) }
    return fresh
  }
}
