/** Metrics of this process, of its connector thread, and of the store. */
import type { Logger } from 'pino'
import { version } from '../../http/package.ts'
import { describeBuild } from '../../operations/metrics/build-info.ts'
import { readThread, type Thread, writeMetrics } from '../../operations/metrics/gather.ts'
import { type Metrics, type MetricsRoles, startMetrics } from '../../operations/metrics/metrics.ts'
import { createStoreMetrics } from '../../operations/metrics/store-metrics.ts'
import { openOperatorStore, openReadStore, readLogBytes, storeFileOf } from '../../store/engines.ts'

export interface MeasuredStore {
  readUrl: string
  /** URL of the store for reads that need an operator's rights. Null when this process has only the API's rights. */
  operatorUrl: string | null
  hasDocuments: boolean
}

export function gatherMetrics({ readUrl, operatorUrl, hasDocuments }: MeasuredStore, log: Logger) {
  let opened: ReturnType<typeof open> | undefined

  async function open() {
    const reader = await openReadStore(readUrl)
    const operator = operatorUrl === null ? null : await openOperatorStore(operatorUrl)
    const close = async () => {
      await reader.close()
      await operator?.close()
    }
    return { store: { reader, operator, readLogBytes: () => readLogBytes(readUrl) }, close }
  }

  /** Closes the store after a failed read, so that the next read opens it again. The store may have been replaced. */
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
  const build = describeBuild(version, storeFileOf(readUrl) === null ? 'postgres' : 'sqlite')
  const sources: Metrics[] = [ofStore, build]
  return {
    count(roles: MetricsRoles): void {
      sources.push(startMetrics(roles))
    },
    addThread(thread: Thread): void {
      sources.push(readThread(thread))
    },
    write: () => writeMetrics(sources),
    close: closeStore,
  }
}
