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
  fatura_http_requests_total: 'Number of answered requests, by route and status.',
  fatura_http_request_seconds:
    'Time in seconds from a request to the last byte of its answer, by route. Requests that wait for a change are not counted.',
  fatura_http_requests_shed_total:
    'Number of requests that got 503 before they were read, because too many arrived at once.',
  fatura_changes_waiting: 'Number of requests that now wait for a change.',
  fatura_pdf_bytes_total: 'Bytes of PDFs that were passed from upstream systems to clients.',
  fatura_postgres_connections: 'Number of connections to PostgreSQL, by kind and state.',
  fatura_postgres_reads:
    'Number of reads that run in PostgreSQL or wait for a connection, by kind. The kind by_key means reads by a key.',
  fatura_upstream_calls_total: 'Number of calls to upstream systems, by system and outcome.',
  fatura_upstream_call_seconds: 'Duration of calls to upstream systems in seconds, by system.',
  fatura_upstream_calls_waiting:
    'Number of calls to upstream systems that wait for their turn. It is the backlog of the synchronization.',
  fatura_upstream_breaker_open:
    '1 from the moment at which the API stops its calls to an upstream system, because it failed too often, until a call succeeds, else 0.',
  fatura_outgoing_webhook_deliveries_total:
    'Number of messages that were sent by outgoing webhooks, by outcome.',
  fatura_outgoing_webhook_delivery_seconds:
    'Time in seconds from storing a change to the 2xx answer of the receiver of its webhook.',
  fatura_invoices_applied_total:
    'Number of answers about invoices that the synchronization handled, by outcome: changed, deleted, overlapped or refused. Overlapped means that two answers at the same time differ, and the invoice is asked for again.',
  fatura_events_applied_total:
    'Number of events of the payment platform that were applied. An event that arrives several times counts once.',
  fatura_webhooks_total:
    'Number of Stripe webhooks that were answered, by status. 200 means that the change is stored, or that there is nothing to store.',
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
