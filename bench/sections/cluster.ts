/**
 * What reads cost on a cluster of Citus against one server: the CPU of all servers together, a read. Asked of the coordinator, and of
 * a worker. `--nodes`: addresses of the coordinator and of the workers, in databases that were
 * migrated; `--single`: that of a database on one server; `--pids`: the servers' first processes, in the same order.
 */
import { openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { searchWords } from '../../src/store/sql/search.ts'
import type { ReadStore } from '../../src/store/store.ts'
import { makeRecord } from '../../test/support/worlds/records.ts'
import { cpuSince, readCpu } from '../load/process-cost.ts'
import { readFlags } from '../options.ts'
import { formatTable, spread } from '../statistics.ts'

const values = readFlags({
  nodes: '',
  single: '',
  pids: '',
  rounds: '5',
})
const nodes = values.nodes.split(',')
const pids = values.pids.split(',').map(Number)
const customers = Array.from({ length: 200 }, (_, n) => `cus_${n}`)
const atOnce = 16
const readsEach = 2_000

const questions: Record<string, (store: ReadStore, customer_id: string) => Promise<unknown>> = {
  'page 1': (store, customer_id) => store.listInvoices({ customer_id, page: 1, page_size: 10 }),
  'page 2': (store, customer_id) => store.listInvoices({ customer_id, page: 2, page_size: 10 }),
  'a search': (store, customer_id) =>
    store.listInvoices({ customer_id, page: 1, page_size: 10, words: searchWords('lima') }),
  detail: (store, customer_id) => store.findInvoice(customer_id, 'in_7'),
}

async function seed(url: string): Promise<void> {
  const store = await openWriteStore(url)
  const records = customers.flatMap(customer_id =>
    Array.from({ length: 40 }, (_, n) => makeRecord({ id: `in_${n}`, customer_id })),
  )
  await store.transaction(tx => tx.saveInvoices(records))
  await store.close()
}

for (const url of [values.single, nodes[0] ?? '']) await seed(url)
const ways = {
  'one server': await openReadStore(values.single),
  'at the coordinator': await openReadStore(nodes[0] ?? ''),
  'at a worker': await openReadStore(nodes[1] ?? ''),
}

async function measure(store: ReadStore, ask: (typeof questions)[string]): Promise<number> {
  let next = 0
  const work = async () => {
    while (next < readsEach) await ask(store, customers[next++ % customers.length] ?? '')
  }
  const before = pids.map(readCpu)
  await Promise.all(Array.from({ length: atOnce }, work))
  return pids.reduce((sum, pid, n) => sum + cpuSince(before[n] ?? new Map(), pid), 0) / readsEach
}

const rows: string[][] = []
for (const [question, ask] of Object.entries(questions)) {
  const costs = new Map(Object.keys(ways).map(way => [way, [] as number[]]))
  for (let round = 0; round <= Number(values.rounds); round++)
    for (const [way, store] of Object.entries(ways)) {
      const cost = await measure(store, ask)
      // The first round plans and connects.
      if (round > 0) costs.get(way)?.push(cost)
    }
  rows.push([question, ...[...costs.values()].map(each => spread(each, 0))])
}
process.stdout.write(`${formatTable(['CPU of all servers, µs a read', ...Object.keys(ways)], rows)}\n`)
for (const store of Object.values(ways)) await store.close()
