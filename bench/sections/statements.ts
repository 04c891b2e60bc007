/**
 * What the list costs in the store alone, question by question: customers of 40, 100,000 and 1,000,000 invoices in one
 * store, each question in a tight loop. Stores are kept in bench/.data for the next run; --fresh makes them again.
 */
import { existsSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { type InvoiceRecord, invoiceStatuses } from '../../src/invoice.ts'
import { migrateStore, openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { searchWords } from '../../src/store/read-model/search.ts'
import type { InvoiceQuery, ReadStore } from '../../src/store/store.ts'
import { createPostgresServer } from '../../test/support/postgres-server.ts'
import { makeRecord } from '../../test/support/records.ts'

const { values: options } = parseArgs({
  options: {
    engine: { type: 'string', default: 'sqlite,postgres' },
    sizes: { type: 'string', default: '40,100000,1000000' },
    fresh: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '0.5' },
  },
})
const sizes = options.sizes.split(',').map(Number)
const folder = new URL('../.data/', import.meta.url).pathname
const day = 86_400_000
const newest = Date.UTC(2026, 10, 1)
const span = 4 * 365 * day

/** Numbers that look random and are always the same. */
function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32
    return state / 2 ** 32
  }
}

const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'

/** Mostly paid and settled; one in 20,000 is uncollectible. In the order in which a payment platform lists: newest first. */
function* makeRecords(size: number): Generator<InvoiceRecord> {
  const random = randomNumbers(size)
  for (let i = 0; i < size; i++) {
    const chance = random()
    const status = chance < 0.85 ? 'paid' : chance < 0.93 ? 'open' : chance < 0.97 ? 'void' : 'draft'
    const isRare = i % 20_000 === 7
    const hasDocument = status === 'paid' || status === 'void'
    const id = Array.from({ length: 24 }, () => letters[Math.floor(random() * letters.length)]).join('')
    yield makeRecord({
      id: `in_${id}`,
      number: `2026-${String(size - i).padStart(7, '0')}`,
      display_name: `Padaria ${size} São Bento, Lda.`,
      customer_name: 'João Conceição',
      customer_id: `cus_bench${size}`,
      customer_email: 'contas@saobento.example',
      company_name: `Padaria ${size} São Bento, Lda.`,
      customer_tax_id: 'PT509442013',
      issued_at: new Date(newest - Math.floor((i / size) * span)).toISOString(),
      status: isRare ? 'uncollectible' : status,
      ix_sync_state: hasDocument ? 'synced' : 'not_synced',
      ix_id: hasDocument ? 30_000_000 + i : null,
      ix_status: hasDocument ? (random() < 0.97 ? 'settled' : 'canceled') : null,
    })
  }
}

async function fill(url: string): Promise<void> {
  const store = await openWriteStore(url)
  for (const size of sizes) {
    const started = performance.now()
    let batch: InvoiceRecord[] = []
    const save = async () => {
      await store.transaction(tx => tx.saveInvoices(batch))
      batch = []
    }
    for (const record of makeRecords(size)) if (batch.push(record) === 500) await save()
    await save()
    const seconds = (performance.now() - started) / 1000
    print(`  ${size} invoices written, ${Math.round(size / seconds)} a second`)
  }
  await store.close()
}

function questions(size: number): Record<string, Omit<InvoiceQuery, 'customer_id' | 'page_size'>> {
  const [mid, last] = [Math.ceil(size / 20), Number.MAX_SAFE_INTEGER]
  const range = {
    issued_from: Math.floor((newest - 0.7 * span) / day) * day,
    issued_before: Math.floor((newest - 0.2 * span) / day) * day,
  }
  const search = (q: string) => ({ page: 1, words: searchWords(q) })
  return {
    'first page': { page: 1 },
    'middle page': { page: mid },
    'last page': { page: last },
    'status, first': { page: 1, status: 'paid' },
    'status, middle': { page: Math.ceil(mid * 0.85), status: 'paid' },
    'status, last': { page: last, status: 'paid' },
    'ix_status, middle': { page: Math.ceil(mid * 0.8), ix_status: 'settled' },
    'both, middle': { page: Math.ceil(mid * 0.02), status: 'paid', ix_status: 'canceled' },
    'rare status, first': { page: 1, status: 'uncollectible' },
    'rare status, last': { page: last, status: 'uncollectible' },
    'days, first': { page: 1, ...range },
    'days, middle': { page: Math.ceil(mid / 2), ...range },
    'days and status, last': { page: last, status: 'open', ...range },
    ...(size <= 100_000 && {
      'q nothing': search('zzzzzz'),
      'q a number': search('2026-0000012'),
      'q year': search('2026'),
      'q one digit': search('7'),
      'q two digits': search('12'),
      'q everything': search('padaria'),
      'q two words': search('padaria 0000'),
      'q two own words': search('2026 77'),
      'q and status': { ...search('77'), status: invoiceStatuses[2] },
      'q last page': { ...search('2026'), page: last },
    }),
  }
}

async function ask(store: ReadStore): Promise<void> {
  const table: Record<string, Record<string, number>> = {}
  for (const size of sizes) {
    for (const [name, question] of Object.entries(questions(size))) {
      const query = { customer_id: `cus_bench${size}`, page_size: 10, ...question }
      const times: number[] = []
      const until = performance.now() + Number(options.seconds) * 1000
      for (let i = 0; i < 5 || performance.now() < until; i++) {
        const started = performance.now()
        await store.listInvoices(query)
        times.push((performance.now() - started) * 1000)
      }
      times.sort((a, b) => a - b)
      table[name] ??= {}
      table[name][`${size} p50`] = Math.round(times[times.length >> 1] ?? 0)
      table[name][`${size} p10`] = Math.round(times[Math.floor(times.length / 10)] ?? 0)
    }
  }
  for (const [name, row] of Object.entries(table)) {
    const figures = sizes.map(size =>
      row[`${size} p50`] === undefined ? '' : `${row[`${size} p50`]} (${row[`${size} p10`]})`,
    )
    print(`  ${name.padEnd(24)}${figures.map(text => text.padStart(16)).join('')}`)
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

async function benchSqlite(): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const path = `${folder}statements-${sizes.join('-')}.db`
  if (options.fresh) rmSync(path, { force: true })
  const isNew = !existsSync(path)
  print(`SQLite: µs, median (and 10th percentile), by ${sizes.join(', ')} invoices`)
  await migrateStore(`sqlite:${path}`)
  if (isNew) await fill(`sqlite:${path}`)
  const invoices = sizes.reduce((sum, size) => sum + size, 0)
  print(`  ${Math.round(statSync(path).size / invoices)} bytes an invoice`)
  const store = await openReadStore(`sqlite:${path}`)
  await ask(store)
  await store.close()
}

async function benchPostgres(): Promise<void> {
  print(`PostgreSQL: µs, median (and 10th percentile), by ${sizes.join(', ')} invoices`)
  const server = await createPostgresServer(['shared_buffers=1GB'])
  await server.start()
  try {
    const url = `${server.url}postgres`
    await migrateStore(url)
    await fill(url)
    const client = new pg.Client(url)
    await client.connect()
    // A vacuum that meets another leaves pages for later.
    for (let i = 0; i < 2; i++) await client.query('VACUUM ANALYZE')
    const { rows } = await client.query(
      "SELECT sum(pg_total_relation_size(oid))::float8 AS size FROM pg_class WHERE relnamespace = 'fatura'::regnamespace AND relkind = 'r'",
    )
    await client.end()
    print(`  ${Math.round(rows[0].size / sizes.reduce((sum, size) => sum + size, 0))} bytes an invoice`)
    const store = await openReadStore(url)
    await ask(store)
    await store.close()
  } finally {
    await server.stop()
    await server.remove()
  }
}

if (options.engine.includes('sqlite')) await benchSqlite()
if (options.engine.includes('postgres')) await benchPostgres()
