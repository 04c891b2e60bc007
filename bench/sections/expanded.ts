/**
 * CPU of a list with `expand=document,payment` over the CPU of the same list without, on one process. Both are asked in turns of some
 * hundred requests, because a shared machine changes its speed from second to second.
 */
import { type Ask, openConnection } from '../load/ask.ts'
import { cpuSince, readCpu } from '../load/process-cost.ts'
import type { Options } from '../options.ts'
import { chooseCustomers, engineLabels, type SeededStore } from '../seed/stores.ts'
import { listPath, type Service, startService } from '../servers/service.ts'
import { formatTable, median, quantile, show } from '../statistics.ts'

const questions = { 'page 1': '?page=1', 'page 2': '?page=2', q: '?q=lda' }
const expand = '&expand=document,payment'
const connections = 8
const customersAsked = 200
/** Turns of each list. The first ones warm up. */
const turns = { quick: 40, whole: 200 }
const warmUp = 5

export async function measureExpanded(options: Options, stores: readonly SeededStore[]): Promise<string> {
  const customers = chooseCustomers(options.shape, customersAsked)
  const rows: string[][] = []
  for (const store of stores) {
    const service = await startService({ folder: options.folder, name: `expanded-${store.engine}`, store })
    const open = Array.from({ length: connections }, () => openConnection(service.address))
    const measured = { service, databasePid: store.server?.pid ?? null, asks: open.map(({ ask }) => ask) }
    for (const [name, question] of Object.entries(questions)) {
      const ratios: number[] = []
      for (let turn = 0; turn < (options.isQuick ? turns.quick : turns.whole); turn++) {
        const list = await measureTurn(measured, customers, question)
        const expanded = await measureTurn(measured, customers, question + expand)
        if (turn >= warmUp) ratios.push(expanded / list)
      }
      rows.push([
        `${engineLabels[store.engine]}: ${name}`,
        show(median(ratios), 2),
        `${show(quantile(ratios, 0.25), 2)}–${show(quantile(ratios, 0.75), 2)}`,
      ])
    }
    for (const { close } of open) close()
    await service.stop()
  }
  return formatTable(['CPU with the database’s, expanded / list', 'Median', 'Middle half'], rows)
}

interface Measured {
  service: Service
  databasePid: number | null
  asks: readonly Ask[]
}

/** CPU of one list of each customer, in microseconds. */
async function measureTurn(
  { service, databasePid, asks }: Measured,
  customers: readonly string[],
  question: string,
): Promise<number> {
  const pids = [service.pid, ...(databasePid === null ? [] : [databasePid])]
  const before = pids.map(readCpu)
  await Promise.all(
    asks.map(async (ask, first) => {
      for (let index = first; index < customers.length; index += asks.length) {
        const path = listPath(customers[index] ?? '') + question
        const { status } = await ask({ path, headers: service.headers })
        if (status !== 200) throw new Error(`${path} was answered ${status}.`)
      }
    }),
  )
  return pids.reduce((sum, pid, index) => sum + cpuSince(before[index] ?? new Map(), pid), 0)
}
