/** Metrics of the synchronization, read from the store. Every process reports the same values. */
import { Gauge, Registry } from '@prometheus-io/client'
import { webhookStates } from '../../store/change-store.ts'
import { recheckedSystems, refusalReasons, refusedKinds, setAsideKinds } from '../../store/connector-store.ts'
import type { OperatorStore, ReadStore } from '../../store/store.ts'
import type { Metrics, Reading } from './metrics.ts'

type Operator = Pick<
  OperatorStore,
  'listStreams' | 'countSetAside' | 'readRechecks' | 'countUncertified' | 'listWebhooks' | 'readChanges'
>

interface StoreMetricsOptions {
  /** Resolves with the same store every time. The first call opens the store. */
  openStore(): Promise<{
    /** Reads the store with an operator's rights. Null where only the API's reads are allowed. Then only the metrics of `basics` exist. */
    operator: Operator | null
    reader: Pick<ReadStore, 'readFreshness'>
    /** Size of the write-ahead log. Null for PostgreSQL. */
    readLogBytes?(): Promise<number | null>
  }>
  /** Whether `openStore` returns an operator. Without an operator, the metrics that need one are not created. */
  isOperator: boolean
  /** Without an invoicing system every invoice lacks a document, so missing documents are not counted. */
  hasDocuments: boolean
  onProblem(error: unknown): void
}

/** The metric counts paid invoices without a document only above this age, in milliseconds. */
const certifiedWithinMs = 24 * 60 * 60_000

/** Time for which a reading is kept, so that several clients cause only one read of the store. */
const keepMs = 5_000

export function createStoreMetrics(options: StoreMetricsOptions): Metrics {
  const figures = new StoreFigures(options)
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<Reading> | undefined
  return {
    read() {
      if (reading === undefined || performance.now() - readAt > keepMs) {
        readAt = performance.now()
        reading = figures.read()
      }
      return reading
    },
  }
}

class StoreFigures {
  private readonly options: StoreMetricsOptions
  private readonly registry = new Registry()
  private readonly gauges: Gauges

  constructor(options: StoreMetricsOptions) {
    const { isOperator, hasDocuments } = options
    this.options = options
    const isWanted = (key: string) =>
      basics.includes(key) || (isOperator && (hasDocuments || key !== 'uncertified'))
    this.gauges = createGauges(key => (isWanted(key) ? [this.registry] : []))
  }

  async read(): Promise<Reading> {
    const { gauges, registry, options } = this
    try {
      const { reader, operator, readLogBytes } = await options.openStore()
      const { synced_at } = await reader.readFreshness()
      const logBytes = (await readLogBytes?.()) ?? null
      if (logBytes !== null) gauges.log.set(logBytes)
      gauges.freshness.set(synced_at === null ? Number.NaN : secondsSince(synced_at))
      if (operator !== null) await this.readDetails(operator)
      gauges.isUp.set(1)
    } catch (error) {
      options.onProblem(error)
      registry.resetMetrics()
      gauges.freshness.set(Number.NaN)
    }
    return registry.getMetricsAsJSON()
  }

  private async readDetails(operator: Operator): Promise<void> {
    const [streams, aside, rechecks] = await Promise.all([
      operator.listStreams(),
      operator.countSetAside(),
      operator.readRechecks(Date.now()),
    ])
    this.showStreams(streams)
    this.showSetAside(aside)
    await this.readWebhooks(operator)
    for (const system of recheckedSystems) {
      const found = rechecks.find(recheck => recheck.system === system)
      this.gauges.rechecked.set({ system }, found?.checked ?? 0)
      this.gauges.corrected.set({ system }, found?.corrected ?? 0)
    }
    if (this.options.hasDocuments) await this.readUncertified(operator)
  }

  private showStreams(streams: Awaited<ReturnType<Operator['listStreams']>>): void {
    const { lag, failing } = this.gauges
    lag.reset()
    failing.reset()
    for (const { name: stream, succeeded_at, failed_at } of streams) {
      if (succeeded_at !== null) lag.set({ stream }, secondsSince(succeeded_at))
      failing.set({ stream }, failed_at === null ? 0 : 1)
    }
  }

  /** Shows 0 for a kind without records. */
  private showSetAside(counts: Awaited<ReturnType<Operator['countSetAside']>>): void {
    const { aside, refused } = this.gauges
    aside.reset()
    refused.reset()
    for (const [system, kinds] of Object.entries(setAsideKinds))
      for (const kind of kinds) aside.set({ system, kind }, 0)
    for (const kind of refusedKinds) for (const reason of refusalReasons) refused.set({ kind, reason }, 0)
    for (const { system, kind, reason, count } of counts)
      if (reason === null) aside.set({ system, kind }, count)
      else refused.set({ kind, reason }, count)
  }

  private async readWebhooks(operator: Operator): Promise<void> {
    const end = (await operator.readChanges(null, null, 1))?.next ?? 0
    const all = await operator.listWebhooks()
    const stateOf = ({ state, attempts }: (typeof all)[number]) =>
      state === 'active' && attempts > 0 ? 'failing' : state
    for (const state of ['failing', ...webhookStates])
      this.gauges.webhooks.set({ state }, all.filter(each => stateOf(each) === state).length)
    this.gauges.webhookBehind.set(Math.max(0, ...all.map(({ cursor }) => (end - cursor) / 1_000_000)))
  }

  /** On Citus this query needs every node, and the other queries do not. A failed node therefore hides only this metric. */
  private async readUncertified(operator: Operator): Promise<void> {
    const count = operator.countUncertified(Date.now() - certifiedWithinMs).catch(error => {
      this.options.onProblem(error)
      return Number.NaN
    })
    this.gauges.uncertified.set(await count)
  }
}

/**
 * Returns the seconds between now and a moment. The distance is positive even for a moment in the future, which a wrong clock has stored.
 */
function secondsSince(moment: number): number {
  return Math.abs(Date.now() - moment) / 1000
}

/** A gauge without a registry does not appear in the output. */
function createGauges(registersOf: (key: string) => Registry[]): Gauges {
  const made = Object.entries<Definition>(definitions).map(([key, [name, help, ...labelNames]]) => [
    key,
    new Gauge({ name, help, labelNames, registers: registersOf(key) }),
  ])
  return Object.fromEntries(made)
}

type Gauges = Record<keyof typeof definitions, Gauge<string>>

type Definition = readonly [name: string, help: string, ...labels: string[]]

/** Metrics that need only the reads of the API. */
const basics = ['isUp', 'freshness', 'log']

const definitions = {
  isUp: ['fatura_store_up', '1 if the store could be read for these metrics, else 0.'],
  freshness: [
    'fatura_freshness_seconds',
    'Age in seconds of the records that the API serves, from Fatura-Synced-At. It is NaN before the first success.',
  ],
  log: [
    'fatura_sqlite_wal_bytes',
    'Size in bytes of the write-ahead log beside the SQLite file. 0 for PostgreSQL.',
  ],
  lag: ['fatura_stream_lag_seconds', 'Time in seconds since the last success of a stream.', 'stream'],
  failing: [
    'fatura_stream_failing',
    '1 if the last run of a stream failed or the key lacks a permission for it, else 0.',
    'stream',
  ],
  aside: [
    'fatura_records_set_aside',
    'Number of records that could not be read, or that wait for another reason, and are asked for again. With the system "deletion_guard" it is the number of changes that are held back.',
    ...['system', 'kind'],
  ],
  refused: [
    'fatura_invoices_refused',
    'Number of invoices whose current version is refused. The kind "refused" means not stored. The kind "outdated" means stored in an older version.',
    ...['kind', 'reason'],
  ],
  webhooks: ['fatura_outgoing_webhooks', 'Number of outgoing webhooks, by state.', 'state'],
  webhookBehind: [
    'fatura_outgoing_webhook_behind_seconds',
    'Time in seconds by which the slowest outgoing webhook is behind the latest change.',
  ],
  rechecked: [
    'fatura_records_rechecked',
    'Number of records that were read again in the last 24 hours to find changes without an event.',
    'system',
  ],
  corrected: [
    'fatura_records_corrected',
    'Number of records that were read again in the last 24 hours and had changed without an event. For Stripe it means that events or webhooks were missed.',
    'system',
  ],
  uncertified: [
    'fatura_paid_invoices_without_document',
    'Number of paid invoices that were issued over 24 hours ago, need a certified document and have no valid one.',
  ],
} as const
