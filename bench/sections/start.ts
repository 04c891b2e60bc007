/**
 * How soon `fatura serve` is ready on a large store, and what a migration's pass over all rows takes: whole, and killed in the
 * middle and run again. On SQLite; the seeded store is copied first. See README.md beside it.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { rewrites } from '../../src/store/migrations.ts'
import { defaultFolder } from '../seed/data-folder.ts'
import { seedStore } from '../seed/seed.ts'
import { median } from '../statistics.ts'

const { values } = parseArgs({
  options: {
    invoices: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '5' },
    data: { type: 'string', default: defaultFolder },
  },
})
const large = Math.round(Number(values.invoices) / 10)
const shape = { customers: Math.round((Number(values.invoices) - large) / 40), each: 40, large: [large] }
const seeded = await seedStore(values.data, shape, null)
const folder = await mkdtemp(join(values.data, 'start-'))
const path = join(folder, 'fatura.db')
const env = { ...process.env, DATABASE_URL: `sqlite:${path}`, LOG_LEVEL: 'silent', SHUTDOWN_DELAY: '0s' }
const entryPoint = new URL('../../bin/fatura.js', import.meta.url).pathname

function start(...args: string[]) {
  return spawn(process.execPath, [entryPoint, ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] })
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

/** From the start of the process to its first 200 of `/ready`, in milliseconds. */
async function timeStart(): Promise<number> {
  const port = await findFreePort()
  const began = performance.now()
  const child = start('serve', '--port', String(port))
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}/ready`).catch(() => null)
    if (answer?.status === 200) break
    if (child.exitCode !== null) throw new Error('fatura serve ended')
    await sleep(2)
  }
  const took = performance.now() - began
  child.kill('SIGINT')
  await once(child, 'exit')
  return took
}

/** The newest version with such a pass. */
const version = Math.max(...Object.keys(rewrites).map(Number))

/** As after the files of the last migration: the whole pass over the rows is to be done. */
function forgetPass(): void {
  const db = new DatabaseSync(path)
  db.exec(`UPDATE migrations SET rewriting = '' WHERE version = ${version}`)
  db.close()
}

function readPlace(): string | null {
  const db = new DatabaseSync(path, { readOnly: true })
  const row = db.prepare('SELECT rewriting FROM migrations WHERE version = ?').get(version)
  db.close()
  return (row?.rewriting ?? null) as string | null
}

async function timeMigration(killAfterMs?: number): Promise<number> {
  const began = performance.now()
  const child = start('migrate')
  if (killAfterMs !== undefined) setTimeout(() => child.kill('SIGKILL'), killAfterMs)
  const [code, signal] = await once(child, 'exit')
  if (killAfterMs === undefined && code !== 0) throw new Error(`fatura migrate ended with ${code ?? signal}`)
  return performance.now() - began
}

const tell = (line: string) => process.stdout.write(`${line}\n`)
try {
  await copyFile(seeded.slice('sqlite:'.length), path)
  const starts: number[] = []
  for (let round = 0; round < Number(values.rounds); round++) starts.push(await timeStart())
  const each = starts.map(ms => Math.round(ms)).join(', ')
  tell(`Ready with ${values.invoices} invoices after ${Math.round(median(starts))} ms (${each}).`)
  forgetPass()
  const whole = await timeMigration()
  tell(`A pass over all rows: ${(whole / 1000).toFixed(1)} s.`)
  forgetPass()
  await timeMigration(whole / 2)
  const place = readPlace()
  const rest = await timeMigration()
  tell(`Killed in the middle it stood at ${place}; run again it took ${(rest / 1000).toFixed(1)} s more.`)
  if (place === null || readPlace() !== null)
    throw new Error('the pass was not killed, or did not come to its end')
} finally {
  await rm(folder, { recursive: true, force: true })
}
