/** Whether a request takes as long for a customer of many invoices as for one of forty. */

import { createRandom, shuffle } from '../../sandbox/random.ts'
import { createProgress } from '../../src/cli/terminal/progress.ts'
import { openConnection } from '../load/ask.ts'
import type { Options } from '../options.ts'
import { largeCustomerId } from '../seed/corpus.ts'
import { chooseCustomers, engineLabels, type SeededStore } from '../seed/stores.ts'
import { type Service, startService } from '../servers/service.ts'
import { formatTable, quantile, show } from '../statistics.ts'
import { type Case, makeCases } from './flat-cases.ts'

/** A cell that takes longer than this in all is asked less often, and says so. */
const cellBudget = 15_000
/** So many small customers, and so many variants of a large one, are asked in turn. */
const variants = 20

interface Cell {
  took: number[]
  /** Statuses that were not the expected one. */
  failed: number[]
  spent: number
}

interface Size {
  invoices: number
  /** The same cases, each time for another customer or another part of one. */
  variants: Case[][]
}

export async function measureFlat(options: Options, stores: readonly SeededStore[]): Promise<string> {
  const tables: string[] = []
  for (const store of stores) {
    const service = await startService({ folder: options.folder, name: `flat-${store.engine}`, store })
    const label = engineLabels[store.engine]
    tables.push(`**${label}**\n\n${await measureEngine(options, service, label)}`)
    await service.stop()
  }
  return tables.join('\n\n')
}

async function measureEngine(options: Options, service: Service, label: string): Promise<string> {
  const { shape, samples } = options
  process.stderr.write(`Looking for pages and invoices to ask ${label} for …\n`)
  const { ask, close } = openConnection(service.address)
  const makeVariants = async (customers: readonly string[]) => {
    const made: Case[][] = []
    for (const [index, customer] of customers.entries())
      made.push(await makeCases(ask, service.headers, { customer, part: index / customers.length }))
    return made
  }
  const sizes: Size[] = [
    { invoices: shape.each, variants: await makeVariants(chooseCustomers(shape, variants)) },
  ]
  for (const [index, invoices] of shape.large.entries()) {
    const customer = largeCustomerId(shape, index)
    sizes.push({ invoices, variants: await makeVariants(Array<string>(variants).fill(customer)) })
  }

  const names = sizes[0]?.variants[0]?.map(({ name }) => name) ?? []
  const cells = names.map(() => sizes.map((): Cell => ({ took: [], failed: [], spent: 0 })))
  const progress = createProgress('requests')
  let done = 0
  const random = createRandom(11)
  const places = cells.flatMap((columns, row) => columns.map((cell, column) => ({ cell, row, column })))
  // The first turn warms up; its answers do not count.
  for (let turn = 0; turn <= samples; turn++)
    // In another order each time: what comes after a heavy request is slower than it would be by itself.
    for (const { cell, row, column } of shuffle(random, places)) {
      const asked = sizes[column]?.variants[turn % variants]?.[row]
      if (asked === undefined || cell.spent > cellBudget) continue
      const { status, took } = await ask(asked)
      cell.spent += took
      if (status !== asked.status) cell.failed.push(status)
      else if (turn > 0) cell.took.push(took)
      progress.update(`to ${label}`, ++done, turn / (samples + 1))
    }
  progress.end()
  close()
  return formatCells(
    names,
    sizes.map(({ invoices }) => invoices),
    cells,
    samples,
  )
}

function formatCells(
  names: readonly string[],
  sizes: readonly number[],
  cells: readonly (readonly Cell[])[],
  samples: number,
): string {
  const shown = sizes.map(size => size.toLocaleString('en-US'))
  const head = ['p50 / p99 in ms', ...shown.map(size => `${size} invoices`)]
  const rows = names.map((name, row) => [name, ...(cells[row] ?? []).map(cell => formatCell(cell, samples))])
  return formatTable(head, rows)
}

function formatCell({ took, failed }: Cell, samples: number): string {
  const times = `${show(quantile(took, 0.5), 2)} / ${show(quantile(took, 0.99), 2)}`
  const fewer = took.length < samples ? ` (n = ${took.length})` : ''
  return `${times}${fewer}${failed.length > 0 ? ` (${failed.length} failed: ${failed[0]})` : ''}`
}
