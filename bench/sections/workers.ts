/**
 * One process that serves against two: as much as they can, and at a rate that one of them can take. Where the load
 * leaves no core free, only the latter tells what a request costs: two cores that run four busy processes disturb them all.
 */

import type { Target } from '../load/targets.ts'
import type { Options } from '../options.ts'
import { runRounds } from '../rounds.ts'
import { chooseCustomers, engineLabels, type SeededStore } from '../seed/stores.ts'
import { hasServeFlag, listPath, startService } from '../servers/service.ts'
import { show } from '../statistics.ts'
import { formatRatios } from './rates.ts'

/** Requests a second that one process takes easily. */
const pace = 1_500

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
      const target = { ...service, databasePid, requests, status: 200 }
      targets.push(
        { ...target, key, name },
        { ...target, key: `${key}-paced`, name: `${name}, at ${show(pace, 0)}/s`, rate: pace },
      )
    }
  const rounds = await runRounds(targets, options.rounds, options.seconds)
  for (const { stop } of targets) await stop()
  const compared = stores.flatMap(({ engine }) => {
    const name = `${engineLabels[engine]}: 2 workers / 1`
    return [
      [`${engine}-2`, `${engine}-1`, name],
      [`${engine}-2-paced`, `${engine}-1-paced`, `${name}, at ${show(pace, 0)}/s`],
    ] as const
  })
  return formatRatios(rounds, compared)
}
