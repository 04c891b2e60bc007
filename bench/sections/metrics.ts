/**
 * What counting costs: `serve` with an admin port that is scraped once a second, against one that counts nothing. Of the latter
 * there are two: how far they differ from each other is what two processes of the same kind differ by.
 */

import { freePort } from '../../test/support/databases/postgres-server.ts'
import type { Target } from '../load/targets.ts'
import type { Options } from '../options.ts'
import { runRounds } from '../rounds.ts'
import { chooseCustomers, engineLabels, type SeededStore } from '../seed/stores.ts'
import { undoAtEnd } from '../servers/clean-up.ts'
import { listPath, startService } from '../servers/service.ts'
import { formatRatios } from './rates.ts'

const kinds = { plain: 'no metrics', again: 'no metrics, again', counted: 'scraped once a second' }
const scrapeEveryMs = 1_000
const adminToken = 'bench'.repeat(8)

export async function measureMetrics(options: Options, stores: readonly SeededStore[]): Promise<string> {
  const customers = chooseCustomers(options.shape, 200)
  const targets: Target[] = []
  const scrapes: Scraping[] = []
  for (const store of stores)
    for (const [kind, name] of Object.entries(kinds)) {
      const isCounted = kind === 'counted'
      const key = `${store.engine}-${kind}`
      const adminPort = await freePort()
      const { headers, ...service } = await startService({
        ...{ folder: options.folder, name: `metrics-${key}`, store },
        env: isCounted ? { ADMIN_PORT: String(adminPort), ADMIN_TOKEN: adminToken } : {},
      })
      if (isCounted) scrapes.push(scrape(`http://127.0.0.1:${adminPort}/metrics`))
      targets.push({
        ...{ ...service, key, databasePid: store.server?.pid ?? null, status: 200 },
        name: `Fatura on ${engineLabels[store.engine]}, ${name}`,
        requests: customers.map(customer => ({ path: listPath(customer), headers })),
      })
    }
  const rounds = await runRounds(targets, options.rounds, options.seconds)
  for (const { stop } of scrapes) await stop()
  for (const { stop } of targets) await stop()
  const compared = stores.flatMap(({ engine }) => [
    [`${engine}-counted`, `${engine}-plain`, `${engineLabels[engine]}: metrics / none`] as const,
    [`${engine}-again`, `${engine}-plain`, `${engineLabels[engine]}: none / none`] as const,
  ])
  return formatRatios(rounds, compared)
}

interface Scraping {
  stop(): Promise<void>
}

/** A scrape that fails ends the run. */
function scrape(url: string): Scraping {
  const ask = async () => (await fetch(url, { headers: { authorization: `Bearer ${adminToken}` } })).text()
  const timer = setInterval(ask, scrapeEveryMs)
  const end = undoAtEnd(async () => clearInterval(timer))
  return {
    async stop() {
      await end()
      if (!/^fatura_http_requests_total\{.*status="200".*\} [1-9]/m.test(await ask()))
        throw new Error(`${url} counted nothing.`)
    },
  }
}
