/** Figures of the synchronization from the store: the same in every process. */
import { Gauge, Registry } from '@prometheus-io/client'
import { recheckedSystems, refusalReasons, refusedKinds, setAsideKinds } from '../../store/connector-store.ts'
import type { OperatorStore, ReadStore } from '../../store/store.ts'
import { webhookStates } from '../../store/webhook-store.ts'
import type { Metrics, Reading } from './metrics.ts'

type Operator = Pick<
  OperatorStore,
  'listStreams' | 'countSetAside' | 'readRechecks' | 'countUncertified' | 'listWebhooks' | 'readChanges'
>

interface StoreMetricsOptions {
  /** Resolves with the same store every time, opened at the first. */
  openStore(): Promise<{
    /** Null where only the API's reads are allowed: then the age of the records is the only figure. */
    operator: Operator | null
    reader: Pick<ReadStore, 'readFreshness'>
    /** Null for a server. */
    readLogBytes?(): Promise<number | null>
  }>
  /** Whether `operator` is not null, and its metrics exist. */
  isOperator: boolean
  /** Without an invoicing system, every invoice lacks a document. */
  hasDocuments: boolean
  onProblem(error: unknown): void
}

/** A paid invoice should have its document by then. */
const certifiedWithinMs = 24 * 60 * 60_000

/** Lifetime of an answer: several clients at once ask the store once. */
const keepMs = 5_000

export function createStoreMetrics(options: StoreMetricsOptions): Metrics {
  const { openStore, isOperator, hasDocuments, onProblem } = options
  const registry = new Registry()
  const made = Object.entries<Definition>(definitions).map(([key, [name, help, ...labelNames]]) => {
    const isWanted = basics.includes(key) || (isOperator && (hasDocuments || key !== 'uncertified'))
    // Without a register, it is never written.
    return [key, new Gauge({ name, help, labelNames, registers: isWanted ? [registry] : [] })]
  })
  const gauges: Record<keyof typeof definitions, Gauge<string>> = Object.fromEntries(made)
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<Reading> | undefined
  // A success in the future was stored by a clock that was ahead: it says nothing of how fresh the records are.
  const secondsSince = (moment: number) => Math.abs(Date.now() - moment) / 1000

  async function readDetails(operator: Operator): Promise<void> {
    const [streams, aside, rechecks] = await Promise.all([
      operator.listStreams(),
      operator.countSetAside(),
      operator.readRechecks(Date.now()),
    ])
    for (const gauge of [gauges.lag, gauges.failing, gauges.aside, gauges.refused]) gauge.reset()
    for (const { name: stream, succeeded_at, failed_at } of streams) {
      if (succeeded_at !== null) gauges.lag.set({ stream }, secondsSince(succeeded_at))
      gauges.failing.set({ stream }, failed_at === null ? 0 : 1)
    }
    for (const [system, kinds] of Object.entries(setAsideKinds))
      for (const kind of kinds) gauges.aside.set({ system, kind }, 0)
    for (const kind of refusedKinds)
      for (const reason of refusalReasons) gauges.refused.set({ kind, reason }, 0)
    for (const { system, kind, reason, count } of aside)
      if (reason === null) gauges.aside.set({ system, kind }, count)
      else gauges.refused.set({ kind, reason }, count)
    await readWebhooks(operator)
    for (const system of recheckedSystems) {
      const found = rechecks.find(recheck => recheck.system === system)
      gauges.rechecked.set({ system }, found?.checked ?? 0)
      gauges.corrected.set({ system }, found?.corrected ?? 0)
    }
    if (!hasDocuments) return
    // On Citus it takes all nodes, and the rest does not: one that is down hides no more than this.
    const count = operator.countUncertified(Date.now() - certifiedWithinMs).catch(error => {
      onProblem(error)
      return Number.NaN
    })
    gauges.uncertified.set(await count)
  }

  async function readWebhooks(operator: Operator): Promise<void> {
    const end = (await operator.readChanges(null, null, 1))?.next ?? 0
    const all = await operator.listWebhooks()
    const stateOf = ({ state, attempts }: (typeof all)[number]) =>
      state === 'active' && attempts > 0 ? 'failing' : state
    for (const state of ['failing', ...webhookStates])
      gauges.webhooks.set({ state }, all.filter(each => stateOf(each) === state).length)
    gauges.webhookBehind.set(Math.max(0, ...all.map(({ cursor }) => (end - cursor) / 1_000_000)))
  }

  async function read(): Promise<Reading> {
    try {
      const { reader, operator, readLogBytes } = await openStore()
      const { synced_at } = await reader.readFreshness()
      const logBytes = (await readLogBytes?.()) ?? null
      if (logBytes !== null) gauges.log.set(logBytes)
      gauges.freshness.set(synced_at === null ? Number.NaN : secondsSince(synced_at))
      if (operator !== null) await readDetails(operator)
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

type Definition = readonly [name: string, help: string, ...labels: string[]]

/** The figures that the API's reads are enough for. */
const basics = ['isUp', 'freshness', 'log']

const definitions = {
  isUp: ['fatura_store_up', '1 when the store could be read for these figures.'],
  freshness: [
    'fatura_freshness_seconds',
    'Age of the records that the API serves, from Fatura-Synced-At. Not a number before the first success.',
  ],
  log: ['fatura_sqlite_wal_bytes', 'Size of the write-ahead log beside the SQLite file; 0 for PostgreSQL.'],
  lag: ['fatura_stream_lag_seconds', 'Time since each stream of records last reached its end.', 'stream'],
  failing: ['fatura_stream_failing', '1 when the last run of a stream failed.', 'stream'],
  aside: [
    'fatura_records_set_aside',
    'Records that do not fit and are tried again later; with the system "deletion_guard", changes that are held back.',
    ...['system', 'kind'],
  ],
  refused: [
    'fatura_invoices_refused',
    'Invoices that fit and are not to be shown as they are now: "refused" are not stored, "outdated" are stored as they were before.',
    ...['kind', 'reason'],
  ],
  webhooks: ['fatura_outgoing_webhooks', 'Outgoing webhooks, by state.', 'state'],
  webhookBehind: [
    'fatura_outgoing_webhook_behind_seconds',
    'Time between the last change that was delivered by the slowest outgoing webhook and the latest of all.',
  ],
  rechecked: [
    'fatura_records_rechecked',
    'Records that lists looked at again within 24 hours, for changes that nothing announced.',
    'system',
  ],
  corrected: [
    'fatura_records_corrected',
    'Records of these that had changed and that nothing had announced. Of Stripe: events or webhooks were missed.',
    'system',
  ],
  uncertified: [
    'fatura_paid_invoices_without_document',
    'Paid invoices, issued over 24 hours ago, that need a certified document and have none in force.',
  ],
} as const
