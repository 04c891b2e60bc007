/**
 * `fatura reconcile --saft` of months of several sizes, each document with its invoice in the store: seconds, and the peak memory.
 * Run: npx node bench/sections/saft.ts [--sizes 10000,100000]
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeSaft } from '../../sandbox/saft-file.ts'
import { type Document, noClaim } from '../../src/domain/document.ts'
import { migrateStore, openWriteStore } from '../../src/store/engines.ts'
import { observationStamp } from '../../src/store/store.ts'
import { makeInvoice } from '../../test/support/worlds/records.ts'
import { readMemory } from '../load/process-cost.ts'
import { describeMachine } from '../machine.ts'
import { readFlags } from '../options.ts'
import { entryPoint } from '../servers/processes.ts'

const month = '2026-10'
const { sizes } = readFlags({ sizes: '10000,100000' })
const folder = await mkdtemp(join(tmpdir(), 'fatura-saft-'))

async function fill(url: string, size: number): Promise<void> {
  await migrateStore(url)
  const store = await openWriteStore(url)
  const at = observationStamp()
  for (let from = 1; from <= size; from += 500)
    await store.transaction(async tx => {
      const numbers = Array.from({ length: Math.min(500, size + 1 - from) }, (_, index) => from + index)
      await tx.saveInvoices(
        numbers.map(n => ({
          invoice: makeInvoice({
            id: `in_${n}`,
            customer_id: `cus_${n % 1_000}`,
            issued_at: `${month}-10T10:00:00.000Z`,
            ...{ ix_id: n, ix_status: 'settled', ix_sync_state: 'synced' },
          }),
          lines: null,
          claim: { ...noClaim, state: 'synced', ix_id: n },
        })),
        at,
      )
      await tx.saveDocuments(numbers.map(documentOf), at)
    })
  for (const name of ['ix:all', 'ix:open'])
    await store.transaction(tx =>
      tx.saveStream({ name, cursor: null, succeeded_at: Date.now(), failed_at: null, error: null }),
    )
  await store.close()
}

function documentOf(n: number): Document {
  return {
    ...{
      id: n,
      type: 'Invoice',
      status: 'settled',
      reference: `in_${n}`,
      number: `${n}/A`,
      date: `${month}-10`,
    },
    ...{ total: '123.0', currency: 'Euro', client_id: n, series_number: `A/${n}`, atcud: `JFX8PR2J-${n}` },
  }
}

async function compare(
  url: string,
  path: string,
): Promise<{ seconds: number; memory: number; found: string }> {
  const started = performance.now()
  const child = spawn(process.execPath, [entryPoint, 'reconcile', '--saft', path], {
    env: { ...process.env, DATABASE_URL: url },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let [memory, found] = [0, '']
  child.stderr.setEncoding('utf8').on('data', text => {
    found += text
  })
  const look = setInterval(() => {
    memory = Math.max(memory, readMemory(child.pid as number).peak)
  }, 100)
  await once(child, 'close')
  clearInterval(look)
  return {
    seconds: (performance.now() - started) / 1000,
    memory,
    found: found.trim().split('\n').at(-1) ?? '',
  }
}

for (const size of sizes.split(',').map(Number)) {
  const url = `sqlite:${join(folder, `${size}.db`)}`
  const path = join(folder, `${size}.xml`)
  await fill(url, size)
  const sales = Array.from({ length: size }, (_, index) => ({
    ...{ number: `FT A/${index + 1}`, atcud: `JFX8PR2J-${index + 1}`, status: 'N' as const },
    ...{ date: `${month}-10`, customer: 'own', net: 100, gross: 123 },
  }))
  const customers = [{ id: 'own', taxId: '123456789', name: 'Ação' }]
  await writeFile(path, writeSaft({ month, customers, sales }))
  const { seconds, memory, found } = await compare(url, path)
  const bytes = Math.round((await stat(path)).size / 1024 ** 2)
  process.stdout.write(
    `${size} documents, ${bytes} MB: ${seconds.toFixed(1)} s, ${Math.round(memory)} MB at most. ${found}\n`,
  )
}
await rm(folder, { recursive: true })
process.stdout.write(`${describeMachine(null)}.\n`)
