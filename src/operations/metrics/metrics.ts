/** Metrics of this process or thread. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from '@prometheus-io/client'
import {
  applyOutcomes,
  breakerTurned,
  changeWaiting,
  eventApplied,
  invoicesApplied,
  pdfPassed,
  requestEnded,
  requestShed,
  upstreamCalled,
  upstreamOutcomes,
  upstreamSystems,
  upstreamWaiting,
  webhookAnswered,
  webhookSent,
} from '../../sources/calls/telemetry.ts'
import type { ReadStore } from '../../store/store.ts'

/** Metrics as plain data, which can be sent to another thread or process. */
export type Reading = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

export interface Metrics {
  read(): Promise<Reading>
}

export interface MetricsRoles {
  /** The connections of the API's store. Null for a connector. */
  serves: Pick<ReadStore, 'readConnections'> | null
  /** Whether to include metrics of the whole process, such as its memory. Only one thread of a process includes such metrics. */
  isMain?: boolean
}

const helps = {
  fatura_http_requests_total: 'Requests that were answered, by route and status.',
  fatura_http_request_seconds:
    'Duration of answers, by route, from the request to the last byte, without waits for a change.',
  fatura_http_requests_shed_total:
    'Requests that were refused unread with 503, because more came than could be served.',
  fatura_changes_waiting: 'Requests that wait for a change.',
  fatura_pdf_bytes_total: 'Bytes of PDFs that were passed on from upstream systems.',
  fatura_postgres_connections: 'Connections to PostgreSQL, by kind and state.',
  fatura_postgres_reads:
    'Reads on their way to PostgreSQL, or waiting for a connection, by kind: by_key are reads by a key.',
  fatura_upstream_calls_total: 'Calls to upstream systems, by system and outcome.',
  fatura_upstream_call_seconds: 'Duration of calls to upstream systems, by system.',
  fatura_upstream_calls_waiting:
    'Calls to upstream systems that wait for their turn: the backlog of the synchronization.',
  fatura_upstream_breaker_open: '1 while an upstream system is left alone because it failed too often.',
  fatura_outgoing_webhook_deliveries_total: 'Messages of outgoing webhooks, by outcome.',
  fatura_outgoing_webhook_delivery_seconds: 'Time from the storing of a change to the 2xx of its receiver.',
  fatura_invoices_applied_total:
    'Answers about invoices that the synchronization stored, by outcome: changed, deleted, overlapped (with another answer that differs: asked for again), or refused.',
  fatura_events_applied_total:
    'Events of the payment platform that were applied; one that comes again counts once.',
  fatura_webhooks_total: 'Webhooks that were answered, by status: 200 means that the change is stored.',
}
type Name = keyof typeof helps

/** Upper bounds of the histograms, in seconds. */
const requestBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]
const callBounds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const deliveryBounds = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600]

/** Starts to count. Series with known labels start at 0, because a query for a series that does not exist returns nothing. */
export function startMetrics({ serves, isMain = true }: MetricsRoles): Metrics {
  const registry = new Registry()
  const make = createMaker(registry)
  if (isMain) collectDefaultMetrics({ register: registry })
  if (serves === null) {
    countWebhooks(make)
    countApplied(make)
  } else countRequests(make)
  const measure = serves && measureConnections(make, serves)
  countUpstreamCalls(make)
  return {
    async read() {
      await measure?.()
      const reading = await registry.getMetricsAsJSON()
      // A value that was not measured yet is NaN, which would make every sum NaN.
      for (const metric of reading)
        metric.values = metric.values.filter(({ value }) => Number.isFinite(value))
      return reading
    },
  }
}

type Maker = ReturnType<typeof createMaker>

function createMaker(registry: Registry) {
  const define = (name: Name, labelNames: string[]) => {
    return { name, help: helps[name], labelNames, registers: [registry] }
  }
  return {
    counter: (name: Name, ...labels: string[]) => new Counter(define(name, labels)),
    gauge: (name: Name, ...labels: string[]) => new Gauge(define(name, labels)),
    histogram: (name: Name, buckets: number[], ...labels: string[]) =>
      new Histogram({ ...define(name, labels), buckets }),
    highest: (name: Name, ...labels: string[]) => new Gauge({ ...define(name, labels), aggregator: 'max' }),
  }
}

function countRequests({ counter, gauge, histogram }: Maker): void {
  const requests = counter('fatura_http_requests_total', 'route', 'status')
  const seconds = histogram('fatura_http_request_seconds', requestBounds, 'route')
  requestEnded.subscribe(ended => {
    // All requests without a route share one label, so that clients cannot create labels.
    const route = ended.route ?? 'none'
    requests.inc({ route, status: ended.status })
    seconds.observe({ route }, ended.seconds)
  })
  const shed = counter('fatura_http_requests_shed_total')
  requestShed.subscribe(() => shed.inc())
  const waiting = gauge('fatura_changes_waiting')
  changeWaiting.subscribe(change => waiting.inc(change))
  const bytes = counter('fatura_pdf_bytes_total')
  pdfPassed.subscribe(passed => bytes.inc(passed.bytes))
}

/** Returns a function that must run before the gauges are read. */
function measureConnections({ gauge }: Maker, store: NonNullable<MetricsRoles['serves']>) {
  const connections = gauge('fatura_postgres_connections', 'kind', 'state')
  const underWay = gauge('fatura_postgres_reads', 'kind')
  return async () => {
    for (const { kind, open, idle, reads } of await store.readConnections()) {
      connections.set({ kind, state: 'idle' }, idle)
      connections.set({ kind, state: 'in_use' }, open - idle)
      underWay.set({ kind }, reads)
    }
  }
}

function countUpstreamCalls({ counter, gauge, histogram, highest }: Maker): void {
  const calls = counter('fatura_upstream_calls_total', 'system', 'outcome')
  const seconds = histogram('fatura_upstream_call_seconds', callBounds, 'system')
  upstreamCalled.subscribe(({ system, outcome, seconds: taken }) => {
    calls.inc({ system, outcome })
    if (outcome !== 'not_asked') seconds.observe({ system }, taken)
  })
  const waiting = gauge('fatura_upstream_calls_waiting', 'system')
  upstreamWaiting.subscribe(({ system, change }) => waiting.inc({ system }, change))
  const breakers = highest('fatura_upstream_breaker_open', 'system')
  breakerTurned.subscribe(({ system, isOpen }) => breakers.set({ system }, isOpen ? 1 : 0))
  for (const system of upstreamSystems) {
    for (const outcome of upstreamOutcomes) calls.inc({ system, outcome }, 0)
    seconds.zero({ system })
    waiting.set({ system }, 0)
    breakers.set({ system }, 0)
  }
}

function countApplied({ counter }: Maker): void {
  const invoices = counter('fatura_invoices_applied_total', 'outcome')
  for (const outcome of applyOutcomes) invoices.inc({ outcome }, 0)
  invoicesApplied.subscribe(({ outcome, count }) => invoices.inc({ outcome }, count))
  const events = counter('fatura_events_applied_total')
  eventApplied.subscribe(() => events.inc())
}

function countWebhooks({ counter, histogram }: Maker): void {
  const received = counter('fatura_webhooks_total', 'status')
  for (const status of [200, 400, 503]) received.inc({ status }, 0)
  webhookAnswered.subscribe(({ status }) => received.inc({ status }))
  const sent = counter('fatura_outgoing_webhook_deliveries_total', 'outcome')
  const seconds = histogram('fatura_outgoing_webhook_delivery_seconds', deliveryBounds)
  for (const outcome of ['delivered', 'failed']) sent.inc({ outcome }, 0)
  webhookSent.subscribe(({ isDelivered, seconds: taken }) => {
    sent.inc({ outcome: isDelivered ? 'delivered' : 'failed' })
    if (isDelivered) seconds.observe(taken)
  })
}
