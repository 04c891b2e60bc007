/**
 * `fatura import` of invoices in random order, with one customer of a fifth of them between: the rate of a tenth of the file and of
 * all of it, and the peak memory. Run: npx node bench/sections/import.ts [--engine sqlite,postgres] [--invoices 500000]
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRandom, shuffle } from '../../sandbox/random.ts'
import { migrateStore } from '../../src/store/engines.ts'
import { createPostgresServer } from '../../test/support/databases/postgres-server.ts'
import { runSql } from '../../test/support/databases/run-sql.ts'
import { readMemory } from '../load/process-cost.ts'
import { describeMachine } from '../machine.ts'
import { readFlags } from '../options.ts'
import { makeRecords } from '../seed/corpus.ts'
import { entryPoint } from '../servers/processes.ts'

const options = readFlags({ engine: 'sqlite,postgres', invoices: '500000' })
const invoices = Number(options.invoices)
const folder = await mkdtemp(join(tmpdir(), 'fatura-import-'))

/** Files of a tenth of the invoices, and of all. */
async function writeFiles(): Promise<[part: string, all: string]> {
  const shape = { customers: Math.round(invoices / 50), each: 40, large: [Math.round(invoices / 5)] }
  const lines = Array.from(makeRecords(shape), ({ invoice, lines }) =>
    Buffer.from(`${JSON.stringify({ ...invoice, lines })}\n`),
  )
  const mixed = shuffle(createRandom(3), lines)
  const write = async (name: string, some: readonly Buffer[]) => {
    const path = join(folder, name)
    const file = createWriteStream(path)
    for (const line of some) if (!file.write(line)) await once(file, 'drain')
    file.end()
    await once(file, 'close')
    return path
  }
  return [await write('part.ndjson', mixed.slice(0, invoices / 10)), await write('all.ndjson', mixed)]
}

/** Invoices a second, and MB. */
async function importFile(url: string, path: string): Promise<{ rate: number; memory: number }> {
  await migrateStore(url)
  const started = performance.now()
  const child = spawn(process.execPath, [entryPoint, 'import', path], {
    env: { ...process.env, DATABASE_URL: url },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  let memory = 0
  const look = setInterval(() => {
    memory = Math.max(memory, readMemory(child.pid as number).peak)
  }, 200)
  const [code] = await once(child, 'exit')
  clearInterval(look)
  if (code !== 0) throw new Error(`The import ended with ${code}.`)
  const count = path.includes('part') ? invoices / 10 : invoices
  return { rate: count / ((performance.now() - started) / 1000), memory }
}

function report(engine: string, part: { rate: number }, all: { rate: number; memory: number }): void {
  const ratio = (all.rate / part.rate).toFixed(2)
  process.stdout.write(
    `${engine}: ${Math.round(part.rate)}/s for ${invoices / 10} invoices, ${Math.round(all.rate)}/s for ${invoices} (× ${ratio}), ${Math.round(all.memory)} MB at most\n`,
  )
}

const [part, all] = await writeFiles()
if (options.engine.includes('sqlite')) {
  const open = (name: string) => `sqlite:${join(folder, `${name}.db`)}`
  report('SQLite', await importFile(open('part'), part), await importFile(open('all'), all))
}
if (options.engine.includes('postgres')) {
  const server = await createPostgresServer(['shared_buffers=1GB'])
  await server.start()
  try {
    await runSql(`${server.url}postgres`, 'CREATE DATABASE whole')
    const open = (name: string) => `${server.url}${name}`
    report('PostgreSQL', await importFile(open('postgres'), part), await importFile(open('whole'), all))
  } finally {
    await server.stop()
    await server.remove()
  }
}
await rm(folder, { recursive: true })
process.stdout.write(`${describeMachine(null)}.\n`)
