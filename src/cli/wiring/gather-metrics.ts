/** The metrics of this process, of those beside it, and of the store. */
import type { Logger } from 'pino'
import type { Peer } from '../../metrics/gather.ts'
import type { Metrics, MetricsRoles } from '../../metrics/metrics.ts'
import type { MetricsStore } from '../../metrics/store-metrics.ts'
import { openOperatorStore, openReadStore, readLogBytes } from '../../store/engines.ts'

export interface MeasuredStore {
  readUrl: string
  /** Null where only the API's reads are allowed. */
  operatorUrl: string | null
  /** Whether an invoicing system is connected. */
  hasDocuments: boolean
}

export interface GatheredMetrics {
  /** Starts counting in this process. */
  count(roles: MetricsRoles): Promise<void>
  /** Another process or thread, with counters of its own. */
  addPeer(peer: Peer): void
  removePeer(peer: Peer): void
  write(): Promise<string>
  close(): Promise<void>
}

export async function gatherMetrics(
  { readUrl, operatorUrl, hasDocuments }: MeasuredStore,
  log: Logger,
): Promise<GatheredMetrics> {
  const [{ startMetrics }, { createGathering, writeMetrics }, { createStoreMetrics }] = await Promise.all([
    import('../../metrics/metrics.ts'),
    import('../../metrics/gather.ts'),
    import('../../metrics/store-metrics.ts'),
  ])
  const peers = createGathering()
  let opened: Promise<{ store: MetricsStore; close(): Promise<void> }> | undefined

  async function open() {
    const reader = await openReadStore(readUrl)
    const operator = operatorUrl === null ? null : await openOperatorStore(operatorUrl)
    const close = async () => {
      await reader.close()
      await operator?.close()
    }
    return { store: { reader, operator, readLogBytes: () => readLogBytes(readUrl) }, close }
  }

  /** After a failure: the next read opens it again, for it may be replaced by now. */
  async function closeStore(): Promise<void> {
    const closing = opened
    opened = undefined
    await (await closing?.catch(() => undefined))?.close()
  }

  const ofStore = createStoreMetrics({
    ...{ hasDocuments, isOperator: operatorUrl !== null },
    async openStore() {
      opened ??= open()
      return (await opened).store
    },
    onProblem(err) {
      log.warn({ err }, 'the store could not be read for the metrics')
      closeStore().catch(() => {})
    },
  })
  const sources: Metrics[] = [peers, ofStore]
  return {
    async count(roles) {
      sources.push(startMetrics(roles))
    },
    addPeer: peers.add,
    removePeer: peers.remove,
    write: () => writeMetrics(sources),
    close: closeStore,
  }
}
