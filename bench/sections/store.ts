/**
 * Costs of a search, of a list, of sums and of one change by the size of a customer, in CPU of the store alone; bytes of the log that a
 * change writes; bytes an invoice and CPU of an import. Run: node bench/sections/store.ts [--engine sqlite,postgres] [--sizes 500,501,1000]
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import type { InvoiceRecord, InvoiceStatus } from '../../src/domain/invoice.ts'
import { migrateStore, openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { searchWords } from '../../src/store/sql/search.ts'
import type { InvoiceQuery } from '../../src/store/store.ts'
import { createPostgresServer } from '../../test/support/databases/postgres-server.ts'
import { readFlags } from '../options.ts'
import { customerId, largeCustomerId, makeRecords, type Shape } from '../seed/corpus.ts'

const options = readFlags({
  engine: 'sqlite,postgres',
  sizes: '500,501,1000,10000,10001,100000',
  customers: '500',
  rounds: '9',
})
const large = options.sizes.split(',').map(Number)
const shape: Shape = { customers: Number(options.customers), each: 40, large }
const last = Number.MAX_SAFE_INTEGER

const questions: Readonly<Record<string, Omit<InvoiceQuery, 'customer_id' | 'page_size'>>> = {
  'q: no hit': { page: 1, words: searchWords('zzyzx') },
  'q: some hits': { page: 1, words: searchWords('0012') },
  'q: every invoice': { page: 1, words: searchWords('example') },
  'q: two words': { page: 1, words: searchWords('lda 77') },
  'q and status': { page: 1, status: 'open', words: searchWords('7') },
  'q: last page': { page: last, words: searchWords('example') },
  'page 2': { page: 2 },
  'middle page': { page: -1 },
  'last page': { page: last },
  'status=paid': { page: 1, status: 'paid' },
  'status=paid, last': { page: last, status: 'paid' },
  'status=void': { page: 1, status: 'void' },
}

/** Returns the CPU time spent so far, in µs: of this process, or of a server's connections. */
type ReadCpu = () => number

function ownCpu(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** Of all processes that descend from one, in µs. The clock of the kernel ticks 100 times a second. */
function cpuOfTree(root: number): number {
  const parents = new Map<number, { parent: number; ticks: number }>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const fields = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
      const ticks = [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0)
      parents.set(Number(name), { parent: Number(fields[1]), ticks })
    } catch {
      // It ended meanwhile.
    }
  }
  const isOf = (id: number): boolean => id === root || (parents.has(id) && isOf(parents.get(id)?.parent ?? 0))
  return [...parents].reduce((sum, [id, { ticks }]) => sum + (isOf(id) ? ticks * 10_000 : 0), 0)
}

/** In one transaction, as an import does. */
async function fill(url: string, readCpu: ReadCpu): Promise<string> {
  const store = await openWriteStore(url)
  let count = 0
  const [cpu, started] = [readCpu(), performance.now()]
  await store.transaction(async tx => {
    let batch: InvoiceRecord[] = []
    const save = async () => {
      count += batch.length
      await tx.saveInvoices(batch)
      batch = []
    }
    for (const record of makeRecords(shape)) if (batch.push(record) === 500) await save()
    await save()
  })
  const [spent, seconds] = [readCpu() - cpu, (performance.now() - started) / 1000]
  await store.close()
  return `${count} written: ${Math.round(spent / count)} µs of CPU an invoice, ${Math.round(count / seconds)} a second`
}

/** Repeats a question until its CPU time is worth reading. */
async function measure(ask: () => Promise<unknown>, readCpu: ReadCpu, minUs: number): Promise<number> {
  await ask()
  let repeats = 0
  const cpu = readCpu()
  while (readCpu() - cpu < minUs) {
    for (let i = 0; i < 3; i++) await ask()
    repeats += 3
  }
  return (readCpu() - cpu) / repeats
}

/** Number of changes whose median and sum are shown. */
const changes = 40

/** One status after another, each in a transaction of its own: median time, and bytes of the log. `readLog` returns its length. */
async function reportChanges(url: string, readLog: () => Promise<number>): Promise<void> {
  const store = await openWriteStore(url)
  const reader = await openReadStore(url)
  const rows: { times: number[]; bytes: number }[] = []
  for (const customer_id of [customerId(0), ...large.map((_, i) => largeCustomerId(shape, i))]) {
    const { summaries, total } = await reader.listInvoices({ customer_id, page: 1_000_000, page_size: 10 })
    const [invoice] = JSON.parse(`[${Buffer.from(summaries)}]`)
    const row = { times: [] as number[], bytes: 0, total }
    rows.push(row)
    for (let turn = -5; turn < changes; turn++) {
      const status: InvoiceStatus = turn % 2 === 0 ? 'open' : 'paid'
      const before = await readLog()
      const started = performance.now()
      await store.transaction(tx => tx.saveInvoices([{ invoice: { ...invoice, status }, lines: null }]))
      if (turn < 0) continue
      row.times.push(performance.now() - started)
      row.bytes += (await readLog()) - before
    }
  }
  await store.close()
  await reader.close()
  const heads = [shape.each, ...large].map(size => String(size).padStart(10)).join('')
  const medians = rows.map(({ times }) => times.sort((a, b) => a - b)[times.length >> 1] ?? 0)
  print(`${'one change, by invoices'.padEnd(24)}${heads}`)
  print(`${'median ms'.padEnd(24)}${medians.map(ms => ms.toFixed(2).padStart(10)).join('')}`)
  print(
    `${'kB of the log'.padEnd(24)}${rows.map(({ bytes }) => (bytes / changes / 1000).toFixed(1).padStart(10)).join('')}`,
  )
}

async function report(url: string, readCpu: ReadCpu, minUs: number, rounds: number): Promise<void> {
  const store = await openReadStore(url)
  print(`${'ms of CPU, by invoices'.padEnd(24)}${large.map(size => String(size).padStart(10)).join('')}`)
  const show = async (name: string, asks: readonly (() => Promise<unknown>)[]) => {
    const figures = asks.map((): number[] => [])
    for (let round = 0; round < rounds; round++)
      for (const [i, ask] of asks.entries()) figures[i]?.push(await measure(ask, readCpu, minUs))
    const medians = figures.map(each => each.sort((a, b) => a - b)[each.length >> 1] ?? 0)
    print(name.padEnd(24) + medians.map(us => (us / 1000).toFixed(3).padStart(10)).join(''))
  }
  await show(
    'sums',
    large.map((_, i) => () => store.readSums(largeCustomerId(shape, i))),
  )
  for (const [name, question] of Object.entries(questions))
    await show(
      name,
      large.map((size, i) => {
        const page = question.page === -1 ? Math.ceil(size / 20) : question.page
        const query = { customer_id: largeCustomerId(shape, i), page_size: 10, ...question, page }
        return () => store.listInvoices(query)
      }),
    )
  await store.close()
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

const folder = mkdtempSync(join(tmpdir(), 'fatura-store-'))
if (options.engine.includes('sqlite')) {
  const path = join(folder, 'store.db')
  await migrateStore(`sqlite:${path}`)
  print(`SQLite: ${await fill(`sqlite:${path}`, ownCpu)}`)
  const invoices = shape.customers * shape.each + large.reduce((sum, size) => sum + size, 0)
  print(`${Math.round(statSync(path).size / invoices)} bytes an invoice`)
  await report(`sqlite:${path}`, ownCpu, 3_000, Number(options.rounds))
  const db = new DatabaseSync(path)
  let written = 0
  await reportChanges(`sqlite:${path}`, async () => {
    const { size } = statSync(`${path}-wal`)
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    written += size
    return written
  })
  db.close()
}
if (options.engine.includes('postgres')) {
  const server = await createPostgresServer(['shared_buffers=1GB'])
  await server.start()
  try {
    const url = `${server.url}postgres`
    const client = new pg.Client(url)
    await client.connect()
    const { rows: started } = await client.query('SELECT pg_backend_pid() AS id')
    const status = readFileSync(`/proc/${started[0].id}/stat`, 'utf8')
    const postmaster = Number(status.split(') ')[1]?.split(' ')[1])
    const readCpu = () => cpuOfTree(postmaster)
    await migrateStore(url)
    print(`PostgreSQL: ${await fill(url, () => readCpu() + ownCpu())}`)
    for (let i = 0; i < 2; i++) await client.query('VACUUM ANALYZE')
    const { rows } = await client.query(
      "SELECT sum(pg_total_relation_size(oid))::float8 AS size FROM pg_class WHERE relnamespace = 'fatura'::regnamespace AND relkind = 'r'",
    )
    const invoices = shape.customers * shape.each + large.reduce((sum, size) => sum + size, 0)
    print(`${Math.round(rows[0].size / invoices)} bytes an invoice`)
    await report(url, readCpu, 100_000, 3)
    await reportChanges(url, async () => {
      const { rows } = await client.query("SELECT (pg_current_wal_insert_lsn() - '0/0')::float8 AS n")
      return rows[0].n
    })
    await client.end()
  } finally {
    await server.stop()
    await server.remove()
  }
}
rmSync(folder, { recursive: true })
