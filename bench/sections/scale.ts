/** Pages 1 and 2, a detail and a 304 over very many invoices against those over 400,000, and the space that an invoice takes on the disk. */
import { stat } from 'node:fs/promises'
import { singleTargets, type Target } from '../load/targets.ts'
import type { Options } from '../options.ts'
import { runRounds } from '../rounds.ts'
import { countInvoices, type Shape } from '../seed/corpus.ts'
import { chooseCustomers, engineLabels, openSeeded, type SeededStore } from '../seed/stores.ts'
import type { PostgresServer } from '../servers/postgres-server.ts'
import { listPath, startService } from '../servers/service.ts'
import { formatTable, show } from '../statistics.ts'
import { formatRates, formatRatios } from './rates.ts'

export async function measureScale(
  options: Options,
  servers: readonly (PostgresServer | null)[],
): Promise<string> {
  const few: Shape = options.isQuick
    ? { customers: 100, each: 40, large: [] }
    : { customers: 10_000, each: 40, large: [] }
  const targets: Target[] = []
  const space: string[][] = []
  const compared: [string, string, string][] = []
  for (const server of servers) {
    const databasePid = server?.pid ?? null
    const measured: Target[][] = []
    for (const shape of [few, options.shape]) {
      const store = await openSeeded(options, shape, server)
      const count = countInvoices(shape)
      const name = `${engineLabels[store.engine]}, ${count.toLocaleString('en-US')} invoices`
      const key = `scale-${store.engine}-${count}`
      const service = await startService({ folder: options.folder, name: key, store })
      const customers = chooseCustomers(shape, 2_000)
      const { headers, ...running } = service
      const lists = ['', '?page=2'].map((question, index): Target => {
        const requests = customers.map(customer => ({ path: listPath(customer) + question, headers }))
        const page = `page ${index + 1}`
        return {
          ...running,
          key: `${key}-${page}`,
          name: `${name}: ${page}`,
          databasePid,
          requests,
          status: 200,
        }
      })
      measured.push([...lists, ...(await singleTargets(service, customers, { key, name, databasePid }))])
      const bytes = await measureSpace(store)
      space.push([name, show(bytes / 2 ** 20, 0), show(bytes / count, 0)])
    }
    const [less = [], more = []] = measured
    targets.push(...less, ...more)
    for (const [index, { key, name }] of more.entries())
      compared.push([
        key,
        less[index]?.key ?? '',
        `${name} / of ${countInvoices(few).toLocaleString('en-US')}`,
      ])
  }
  const rounds = await runRounds(targets, options.rounds, options.seconds)
  for (const { stop } of targets) await stop()
  return [
    formatTable(['On the disk, indexes and lines included', 'MB', 'Bytes/invoice'], space),
    formatRates(rounds),
    formatRatios(rounds, compared),
  ].join('\n\n')
}

async function measureSpace({ url, server }: SeededStore): Promise<number> {
  if (server === null) return (await stat(url.slice('sqlite:'.length))).size
  const { rows } = await server.query(
    new URL(url).pathname.slice(1),
    'SELECT pg_database_size(current_database()) AS bytes',
  )
  return Number(rows[0].bytes)
}
