/** Time until `fatura serve` is ready on a large store. The seeded store is copied first. See README.md beside it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { describeMachine } from '../machine.ts'
import { readFlags } from '../options.ts'
import { defaultFolder } from '../seed/data-folder.ts'
import { openSeeded, type SeededStore } from '../seed/stores.ts'
import { cleanUp, cleanUpOnSignals, undoAtEnd } from '../servers/clean-up.ts'
import { startPostgres } from '../servers/postgres-server.ts'
import { median } from '../statistics.ts'

const values = readFlags({
  invoices: '1000000',
  rounds: '5',
  engine: 'sqlite',
  data: defaultFolder,
})
const large = Math.round(Number(values.invoices) / 10)
const shape = { customers: Math.round((Number(values.invoices) - large) / 40), each: 40, large: [large] }
const entryPoint = new URL('../../bin/fatura.js', import.meta.url).pathname

/** A copy of the seeded store, which goes away at the end. */
interface Copy {
  /** As its owner, and as the role that may only read. */
  url: string
  readUrl: string
  run(sql: string): Promise<Record<string, unknown>[]>
}

async function copyFileStore({ url }: SeededStore): Promise<Copy> {
  const path = join(values.data, 'start.db')
  undoAtEnd(async () => {
    for (const end of ['', '-wal', '-shm']) await rm(path + end, { force: true })
  })
  await copyFile(url.slice('sqlite:'.length), path)
  return {
    url: `sqlite:${path}`,
    readUrl: `sqlite:${path}`,
    async run(sql) {
      const db = new DatabaseSync(path)
      const rows = db.prepare(sql.replace('fatura.', '')).all()
      db.close()
      return rows
    },
  }
}

async function copyDatabase({ url, readUrl, server }: SeededStore): Promise<Copy> {
  if (server === null) throw new Error('There is no PostgreSQL.')
  const drop = 'DROP DATABASE IF EXISTS start WITH (FORCE)'
  await server.query('postgres', drop)
  undoAtEnd(async () => void (await server.query('postgres', drop)))
  await server.query(
    'postgres',
    `CREATE DATABASE start TEMPLATE ${new URL(url).pathname.slice(1)} STRATEGY file_copy`,
  )
  const ofCopy = (address: string) => Object.assign(new URL(address), { pathname: '/start' }).href
  return {
    url: ofCopy(url),
    readUrl: ofCopy(readUrl),
    run: async sql => (await server.query('start', sql)).rows,
  }
}

function start(url: string, ...args: string[]) {
  const env = { ...process.env, DATABASE_URL: url, LOG_LEVEL: 'silent', SHUTDOWN_DELAY: '0s' }
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
async function timeStart({ readUrl }: Copy): Promise<number> {
  const port = await findFreePort()
  const began = performance.now()
  const child = start(readUrl, 'serve', '--port', String(port))
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

const tell = (line: string) => process.stdout.write(`${line}\n`)
cleanUpOnSignals()
try {
  const server = values.engine === 'postgres' ? await startPostgres(values.data) : null
  const seeded = await openSeeded({ folder: values.data }, shape, server)
  const copy = await (server === null ? copyFileStore : copyDatabase)(seeded)
  const starts: number[] = []
  for (let round = 0; round < Number(values.rounds); round++) starts.push(await timeStart(copy))
  const each = starts.map(ms => Math.round(ms)).join(', ')
  tell(`Ready with ${values.invoices} invoices after ${Math.round(median(starts))} ms (${each}).`)
  tell(`${describeMachine(server?.version ?? null)}.`)
} finally {
  await cleanUp()
}
