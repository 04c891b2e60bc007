/** Fetches again invoices that did not fit, were refused a while ago, or wait for an unreachable part of the store. */
import { refusedKinds, type SetAside, waitingKind } from '../store/connector-store.ts'
import { type Applied, addApplied, noId, nothingApplied } from './apply.ts'
import type { Refetch } from './refetch-invoices.ts'
import { leftSince, realClocks } from './schedule.ts'
import type { SyncContext } from './sync-context.ts'

const batchSize = 100
/** Refused invoices mostly stay refused, and every list of everything shows them: each is fetched alone only this often. */
const refusedAgainMs = 60 * 60_000
/** A record without an id cannot be fetched: it is forgotten once no list held one for this long. */
const forgetNamelessMs = 3 * 24 * 60 * 60_000

export function createRetry({ source: { system }, store, calls, signal }: SyncContext, refetch: Refetch) {
  function fetchAgain(records: readonly SetAside[]): Promise<Applied> {
    calls.expect(records)
    return refetch.fetchEach(records.map(({ id }) => ({ id })))
  }

  const count = async (kind: string) => {
    const counts = await store.countSetAside()
    return Number(counts.find(each => each.system === system && each.kind === kind)?.count ?? 0)
  }

  /** Starts with those tried longest ago; goes on for as long as some of them fit. */
  async function retryKind(kind: string): Promise<Applied[]> {
    const done: Applied[] = []
    for (let before = await count(kind); before > 0 && !signal.aborted; ) {
      const invoices = await store.listSetAside(batchSize, system, { kind })
      done.push(await fetchAgain(invoices))
      const left = await count(kind)
      if (left >= before || invoices.length < batchSize) break
      before = left
    }
    return done
  }

  /** At most one batch of each kind. */
  async function retryRefused(): Promise<Applied[]> {
    const done: Applied[] = []
    for (const kind of refusedKinds) {
      const isOlder = ({ last_at }: SetAside, ms: number) => leftSince(last_at, ms, realClocks) === 0
      const oldest = await store.listSetAside(batchSize, system, { kind })
      const due = oldest.filter(record => record.id !== noId && isOlder(record, refusedAgainMs))
      if (due.length > 0) done.push(await fetchAgain(due))
      const forgotten = oldest.filter(record => record.id === noId && isOlder(record, forgetNamelessMs))
      if (forgotten.length > 0) await store.transaction(tx => tx.clearSetAside(forgotten))
    }
    return done
  }

  const sum = (all: readonly Applied[]) => (all.length === 0 ? null : all.reduce(addApplied, nothingApplied))

  return {
    retryWaiting: async () => sum(await retryKind(waitingKind)),
    retrySetAside: async () => sum([...(await retryKind('invoice')), ...(await retryRefused())]),
  }
}
