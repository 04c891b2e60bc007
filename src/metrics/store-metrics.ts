/** Figures of the synchronization from the store: the same in every process. */
import { Gauge, Registry } from '@prometheus-io/client'
import type { OperatorStore, ReadStore } from '../store/store.ts'
import { readDrift } from './drift-estimate.ts'
import type { Metrics, Reading } from './metrics.ts'

export interface MetricsStore {
  /** Null where only the API's reads are allowed: then the age of the records is the only figure. */
  operator: Pick<OperatorStore, 'listStreams' | 'countSetAside' | 'readDrift' | 'countUncertified'> | null
  reader: Pick<ReadStore, 'readFreshness'>
  /** Null for a server. */
  readLogBytes?(): Promise<number | null>
}

export interface StoreMetricsOptions {
  /** Resolves with the same store every time, opened at the first. */
  openStore(): Promise<MetricsStore>
  /** Whether `operator` is not null, and its metrics exist. */
  isOperator: boolean
  /** Without an invoicing system, every invoice lacks a document. */
  hasDocuments: boolean
  onProblem(error: unknown): void
  now?: () => number
}

/** A paid invoice should have its document by then. */
const certifiedWithinMs = 24 * 60 * 60_000

/** Lifetime of an answer: several clients at once ask the store once. */
const keepMs = 5_000

export function createStoreMetrics(options: StoreMetricsOptions): Metrics {
  const { openStore, isOperator, hasDocuments, onProblem, now = Date.now } = options
  const registry = new Registry()
  const gauges = createGauges([registry])
  const details = isOperator ? createDetails([registry], hasDocuments) : null
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<Reading> | undefined
  const secondsSince = (moment: number) => Math.max(0, (now() - moment) / 1000)

  async function readStore(): Promise<void> {
    const { reader, operator, readLogBytes } = await openStore()
    const synced_at = await reader.readFreshness()
    const logBytes = (await readLogBytes?.()) ?? null
    if (logBytes !== null) gauges.log.set(logBytes)
    gauges.freshness.set(synced_at === null ? Number.NaN : secondsSince(synced_at))
    if (operator !== null && details !== null) await readDetails(operator, details)
  }

  async function readDetails(
    operator: NonNullable<MetricsStore['operator']>,
    gauges: Details,
  ): Promise<void> {
    const [streams, aside, drifts] = await Promise.all([
      operator.listStreams(),
      operator.countSetAside(),
      readDrift(operator, now()),
    ])
    for (const gauge of [gauges.lag, gauges.failing, gauges.aside, gauges.refused]) gauge.reset()
    for (const { name: stream, succeeded_at, failed_at } of streams) {
      if (succeeded_at !== null) gauges.lag.set({ stream }, secondsSince(succeeded_at))
      gauges.failing.set({ stream }, failed_at === null ? 0 : 1)
    }
    for (const { system, kind, reason, count } of aside)
      if (reason === null) gauges.aside.set({ system, kind }, count)
      else gauges.refused.set({ kind, reason }, count)
    for (const [window, drift] of Object.entries(drifts)) {
      for (const name of driftNames) gauges[name].set({ window }, drift[name])
      // Before any comparison, all may be wrong.
      gauges.driftAtMost.set({ window }, drift.ratio_at_most ?? 1)
    }
    if (gauges.uncertified === null) return
    // On Citus it takes all nodes, and the rest does not: one that is down hides no more than this.
    const uncertified = operator.countUncertified(now() - certifiedWithinMs).catch(error => {
      onProblem(error)
      return Number.NaN
    })
    gauges.uncertified.set(await uncertified)
  }

  async function read(): Promise<Reading> {
    try {
      await readStore()
      gauges.isUp.set(1)
    } catch (error) {
      onProblem(error)
      registry.resetMetrics()
      gauges.freshness.set(Number.NaN)
    }
    return registry.getMetricsAsJSON()
  }

  return {
    read() {
      if (reading === undefined || performance.now() - readAt > keepMs) {
        readAt = performance.now()
        reading = read()
      }
      return reading
    },
  }
}

function createGauges(registers: Registry[]) {
  return {
    isUp: new Gauge({
      name: 'fatura_store_up',
      help: '1 when the store could be read for these figures.',
      registers,
    }),
    freshness: new Gauge({
      name: 'fatura_freshness_seconds',
      help: 'Age of the records that the API serves, from Fatura-Synced-At. Not a number before the first success.',
      registers,
    }),
    log: new Gauge({
      name: 'fatura_sqlite_wal_bytes',
      help: 'Size of the write-ahead log beside the SQLite file; 0 for PostgreSQL.',
      registers,
    }),
  }
}

type Details = ReturnType<typeof createDetails>

const driftNames = ['compared', 'differing', 'listed', 'missing', 'repaired', 'neighbours'] as const

function createDetails(registers: Registry[], hasDocuments: boolean) {
  return {
    lag: new Gauge({
      name: 'fatura_stream_lag_seconds',
      help: 'Time since each stream of records last reached its end.',
      labelNames: ['stream'],
      registers,
    }),
    failing: new Gauge({
      name: 'fatura_stream_failing',
      help: '1 when the last run of a stream failed.',
      labelNames: ['stream'],
      registers,
    }),
    aside: new Gauge({
      name: 'fatura_records_set_aside',
      help: 'Records that do not fit and are tried again later; with the system "deletion_guard", changes that are held back.',
      labelNames: ['system', 'kind'],
      registers,
    }),
    refused: new Gauge({
      name: 'fatura_invoices_refused',
      help: 'Invoices that fit and are none of ours as they are now: "refused" are not stored, "outdated" are stored as they were before.',
      labelNames: ['kind', 'reason'],
      registers,
    }),
    compared: new Gauge({
      name: 'fatura_drift_compared',
      help: 'Stored invoices that were compared with their sources, within 24 hours, and in this hour and the one before.',
      labelNames: ['window'],
      registers,
    }),
    differing: new Gauge({
      name: 'fatura_drift_differing',
      help: 'Compared invoices that differed at a second look too.',
      labelNames: ['window'],
      registers,
    }),
    listed: new Gauge({
      name: 'fatura_drift_listed',
      help: 'Invoices of the payment platform that were looked for in the store.',
      labelNames: ['window'],
      registers,
    }),
    missing: new Gauge({
      name: 'fatura_drift_missing',
      help: 'Listed invoices that were missing at a second look too.',
      labelNames: ['window'],
      registers,
    }),
    repaired: new Gauge({
      name: 'fatura_drift_repaired',
      help: 'Differing or missing invoices that were repaired.',
      labelNames: ['window'],
      registers,
    }),
    neighbours: new Gauge({
      name: 'fatura_drift_neighbours_repaired',
      help: 'Invoices near these that were repaired, too.',
      labelNames: ['window'],
      registers,
    }),
    driftAtMost: new Gauge({
      name: 'fatura_drift_ratio_at_most',
      help: 'With 95 % confidence, no larger share of all stored invoices differs from its source.',
      labelNames: ['window'],
      registers,
    }),
    uncertified: hasDocuments
      ? new Gauge({
          name: 'fatura_paid_invoices_without_document',
          help: 'Paid invoices, issued over 24 hours ago, that need a certified document and have none in force.',
          registers,
        })
      : null,
  }
}
