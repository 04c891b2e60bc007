/** Metrics of this process, or this thread. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from '@prometheus-io/client'
import type { ReadStore } from '../store/store.ts'
import {
  breakerTurned,
  changeWaiting,
  pdfPassed,
  requestEnded,
  requestShed,
  upstreamCalled,
  upstreamOutcomes,
  upstreamSystems,
  upstreamWaiting,
  webhookAnswered,
  webhookSent,
} from '../telemetry.ts'

/** Metrics as plain data, which can be sent to another thread or process. */
export type Reading = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

export interface Metrics {
  read(): Promise<Reading>
}

export interface MetricsRoles {
  /** The connections of the store that is served from; null when none is. */
  serves: Pick<ReadStore, 'readConnections' | 'readNodes'> | null
  synchronizes: boolean
  /** Whether to include metrics of the whole process, such as its memory: not in a second thread. */
  isMain?: boolean
}

/** Upper bounds of the histograms, in seconds. */
const requestBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]
const callBounds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** Requests without a route share one name: the number of labels must not depend on clients. */
const noRoute = 'none'

/** Counts from now on. Series whose labels are known are 0 until then: a query for one that is absent is empty. */
export function startMetrics({ isMain = true, ...roles }: MetricsRoles): Metrics {
  const registry = new Registry()
  const registers = [registry]
  if (isMain) collectDefaultMetrics({ register: registry })
  if (roles.serves !== null) {
    countRequests(registers)
    measureConnections(registers, roles.serves)
  }
  if (roles.synchronizes) {
    countWebhooks(registers)
    countDeliveries(registers)
  }
  countUpstreamCalls(registers)
  return { read: async () => (await registry.getMetricsAsJSON()).map(withoutGaps) }
}

/** A value that was not measured yet is NaN, and would make a sum NaN. */
function withoutGaps<One extends Reading[number]>(metric: One): One {
  return { ...metric, values: metric.values.filter(({ value }) => Number.isFinite(value)) }
}

function countRequests(registers: Registry[]): void {
  const requests = new Counter({
    name: 'fatura_http_requests_total',
    help: 'Requests that were answered, by route and status.',
    labelNames: ['route', 'status'],
    registers,
  })
  const seconds = new Histogram({
    name: 'fatura_http_request_seconds',
    help: 'Duration of answers, by route, from the request to the last byte, without waits for a change.',
    labelNames: ['route'],
    buckets: requestBounds,
    registers,
  })
  requestEnded.subscribe(ended => {
    const route = ended.route ?? noRoute
    requests.inc({ route, status: ended.status })
    seconds.observe({ route }, ended.seconds)
  })
  const shed = new Counter({
    name: 'fatura_http_requests_shed_total',
    help: 'Requests that were refused unread with 503, because more came than could be served.',
    registers,
  })
  requestShed.subscribe(() => shed.inc())
  const waiting = new Gauge({
    name: 'fatura_changes_waiting',
    help: 'Requests that wait for a change.',
    registers,
  })
  changeWaiting.subscribe(change => waiting.inc(change))
  const bytes = new Counter({
    name: 'fatura_pdf_bytes_total',
    help: 'Bytes of PDFs that were passed on from upstream systems.',
    registers,
  })
  pdfPassed.subscribe(passed => bytes.inc(passed.bytes))
}

function measureConnections(
  registers: Registry[],
  store: Pick<ReadStore, 'readConnections' | 'readNodes'>,
): void {
  const connections = new Gauge({
    name: 'fatura_postgres_connections',
    help: 'Connections to PostgreSQL, by kind and state.',
    labelNames: ['kind', 'state'],
    registers,
    async collect() {
      for (const { kind, open, idle } of await store.readConnections()) {
        connections.set({ kind, state: 'idle' }, idle)
        connections.set({ kind, state: 'in_use' }, open - idle)
      }
    },
  })
  const reads = new Gauge({
    name: 'fatura_postgres_reads',
    help: 'Reads on their way to PostgreSQL, or waiting for a connection, by kind: lanes are reads by a key.',
    labelNames: ['kind'],
    registers,
    async collect() {
      for (const { kind, reads: underway } of await store.readConnections()) reads.set({ kind }, underway)
    },
  })
  const asked = new Gauge({
    name: 'fatura_postgres_node_asked',
    help: '1 for a server that is read from; 0 for one that is out of reach, or left out because its content is old.',
    labelNames: ['node'],
    registers,
    async collect() {
      for (const { at, isAsked } of await store.readNodes()) asked.set({ node: at }, isAsked ? 1 : 0)
    },
  })
  const behind = new Gauge({
    name: 'fatura_postgres_node_behind_seconds',
    help: 'Age of the content of a server, relative to the newest, where several are read from.',
    labelNames: ['node'],
    registers,
    async collect() {
      for (const { at, behindMs } of await store.readNodes()) behind.set({ node: at }, behindMs / 1000)
    },
  })
}

function countUpstreamCalls(registers: Registry[]): void {
  const calls = new Counter({
    name: 'fatura_upstream_calls_total',
    help: 'Calls to upstream systems, by system and outcome.',
    labelNames: ['system', 'outcome'],
    registers,
  })
  const seconds = new Histogram({
    name: 'fatura_upstream_call_seconds',
    help: 'Duration of calls to upstream systems, by system.',
    labelNames: ['system'],
    buckets: callBounds,
    registers,
  })
  upstreamCalled.subscribe(({ system, outcome, seconds: taken }) => {
    calls.inc({ system, outcome })
    if (outcome !== 'not_asked') seconds.observe({ system }, taken)
  })
  const waiting = new Gauge({
    name: 'fatura_upstream_calls_waiting',
    help: 'Calls to upstream systems that wait for their turn: the backlog of the synchronization.',
    labelNames: ['system'],
    registers,
  })
  upstreamWaiting.subscribe(({ system, change }) => waiting.inc({ system }, change))
  const breakers = new Gauge({
    name: 'fatura_upstream_breaker_open',
    help: '1 while an upstream system is left alone because it failed too often.',
    labelNames: ['system'],
    aggregator: 'max',
    registers,
  })
  breakerTurned.subscribe(({ system, isOpen }) => breakers.set({ system }, isOpen ? 1 : 0))
  for (const system of upstreamSystems) {
    for (const outcome of upstreamOutcomes) calls.inc({ system, outcome }, 0)
    seconds.zero({ system })
    waiting.set({ system }, 0)
    breakers.set({ system }, 0)
  }
}

function countDeliveries(registers: Registry[]): void {
  const sent = new Counter({
    name: 'fatura_endpoint_webhooks_total',
    help: 'Webhooks that were sent to endpoints, by outcome.',
    labelNames: ['outcome'],
    registers,
  })
  const seconds = new Histogram({
    name: 'fatura_endpoint_delivery_seconds',
    help: 'Time from the storing of a change to the answer of an endpoint that took it.',
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600],
    registers,
  })
  for (const outcome of ['delivered', 'failed']) sent.inc({ outcome }, 0)
  webhookSent.subscribe(({ isDelivered, seconds: taken }) => {
    sent.inc({ outcome: isDelivered ? 'delivered' : 'failed' })
    if (isDelivered) seconds.observe(taken)
  })
}

function countWebhooks(registers: Registry[]): void {
  const webhooks = new Counter({
    name: 'fatura_webhooks_total',
    help: 'Webhooks that were answered, by status: 200 means that the change is stored.',
    labelNames: ['status'],
    registers,
  })
  for (const status of [200, 400, 503]) webhooks.inc({ status }, 0)
  webhookAnswered.subscribe(({ status }) => webhooks.inc({ status }))
}
