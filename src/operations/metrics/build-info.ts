/** A metric that is always 1. The labels name the running version of Fatura, the engine of the store, and the version of Node. */
import { Gauge, Registry } from '@prometheus-io/client'
import type { Metrics } from './metrics.ts'

export function describeBuild(version: string, engine: 'sqlite' | 'postgres'): Metrics {
  const registry = new Registry()
  const labels = { version, engine, node: process.versions.node }
  const gauge = new Gauge({
    name: 'fatura_build_info',
    help: 'Always 1. Its labels hold the version of Fatura, the engine of the store, and the version of Node.',
    labelNames: Object.keys(labels),
    registers: [registry],
  })
  gauge.set(labels, 1)
  return { read: () => registry.getMetricsAsJSON() }
}
