/** `npm run bench`: seeds, starts, loads, stops, and writes down what came out. See README.md beside it. */

import { describeMachine } from './machine.ts'
import { type Options, readOptions, usage } from './options.ts'
import { formatSection, type Measurement, titles, writeReport } from './report.ts'
import { measureExpanded } from './sections/expanded.ts'
import { measureFlat } from './sections/flat.ts'
import { measureMetrics } from './sections/metrics.ts'
import { measureRates } from './sections/rates.ts'
import { measureScale } from './sections/scale.ts'
import { openSeeded, type SeededStore, startEngines } from './seed/stores.ts'
import { cleanUp, cleanUpOnSignals, isInterrupted } from './servers/clean-up.ts'

const measures = {
  rates: measureRates,
  expanded: measureExpanded,
  flat: measureFlat,
  metrics: measureMetrics,
}

async function measure(options: Options): Promise<void> {
  const servers = await startEngines(options)
  const measurements: Measurement[] = []
  if (options.isScale) {
    measurements.push({ title: titles.scale, body: await measureScale(options, servers) })
  } else {
    const stores: SeededStore[] = []
    for (const server of servers) stores.push(await openSeeded(options, options.shape, server))
    for (const section of options.sections) {
      process.stderr.write(`${titles[section]} …\n`)
      const body = await measures[section](options, stores)
      if (body !== null) measurements.push({ title: titles[section], body })
    }
  }
  const version = servers.find(server => server !== null)?.version ?? null
  const provenance = `Measured on ${new Date().toISOString().slice(0, 10)} with \`${options.command}\`: ${describeMachine(version)}.`
  process.stdout.write(`${measurements.map(one => formatSection(one, provenance)).join('\n')}\n`)
  if (options.isQuick) process.stderr.write('A quick run: docs/performance.md stays as it is.\n')
  else await writeReport(measurements, provenance)
}

const args = process.argv.slice(2)
if (args.includes('--help')) {
  process.stdout.write(usage)
} else {
  cleanUpOnSignals()
  try {
    await measure(readOptions(args))
  } catch (error) {
    if (!isInterrupted()) process.stderr.write(`${(error as Error).message}\n`)
    process.exitCode = 1
  } finally {
    await cleanUp()
  }
}
