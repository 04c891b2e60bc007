/** One process that serves against two. */
import type { Options } from './options.ts'
import { formatRates, formatRatios } from './rates.ts'
import { runRounds } from './rounds.ts'
import { hasServeFlag, listPath, startService } from './service.ts'
import { chooseCustomers, engineLabels, type SeededStore } from './stores.ts'
import type { Target } from './targets.ts'

export async function measureWorkers(
  options: Options,
  stores: readonly SeededStore[],
): Promise<string | null> {
  if (!hasServeFlag('--workers')) {
    process.stderr.write('Skipped the workers: this version of serve has no --workers.\n')
    return null
  }
  const customers = chooseCustomers(options.shape, 200)
  const targets: Target[] = []
  for (const store of stores)
    for (const workers of [1, 2]) {
      const key = `${store.engine}-${workers}`
      const { headers, ...service } = await startService({
        folder: options.folder,
        name: `workers-${key}`,
        store,
        flags: ['--workers', String(workers)],
      })
      const requests = customers.map(customer => ({ path: listPath(customer), headers }))
      const name = `Fatura on ${engineLabels[store.engine]}, --workers ${workers}`
      const databasePid = store.server?.pid ?? null
      targets.push({ ...service, key, name, databasePid, requests, status: 200 })
    }
  const rounds = await runRounds(targets, options.rounds, options.seconds)
  for (const { stop } of targets) await stop()
  const compared = stores.map(
    ({ engine }) => [`${engine}-2`, `${engine}-1`, `${engineLabels[engine]}: 2 workers / 1`] as const,
  )
  return [formatRates(rounds), formatRatios(rounds, compared)].join('\n\n')
}
