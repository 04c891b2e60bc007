/**
 * Writes the demo's store, on both engines, its answers and all public names into test/store/released/VERSION, which later versions must keep.
 * Run once a release, with an empty database of PostgreSQL 15 and the pg_dump of that version on the PATH:
 * `node scripts/write-released-store.ts postgres://postgres@127.0.0.1:5432/released`.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { gzipSync } from 'node:zlib'
import { pino } from 'pino'
import { startDemoSystems } from '../src/cli/commands/demo-systems.ts'
import { startApi } from '../src/cli/start/start-api.ts'
import type { Invoice } from '../src/domain/invoice.ts'
import { createToken } from '../src/http/access/token.ts'
import { version } from '../src/http/package.ts'
import { openWriteStore } from '../src/store/engines.ts'
import { listPublicNames } from './public-names.ts'

const [database = ''] = process.argv.slice(2)
const folder = join(import.meta.dirname, '../test/store/released', version)
const temporary = mkdtempSync(join(tmpdir(), 'fatura-released-'))
const path = join(temporary, 'fatura.db')
const log = pino({ level: 'silent' })
const write = (name: string, content: string | Buffer) =>
  writeFileSync(join(folder, `${name}.gz`), gzipSync(content, { level: 9 }))

mkdirSync(folder, { recursive: true })
write('sqlite.json', await fill(`sqlite:${path}`))
write('sqlite.db', copyFile())
write('postgres.json', await fill(database))
write('postgres.sql', dumpDatabase())
write('names.txt', (await listPublicNames()).join('\n'))
rmSync(temporary, { recursive: true, force: true })

/** The answers of a store that is filled before, with the token that they were asked for with. */
async function fill(url: string): Promise<string> {
  const systems = await startDemoSystems(url, log, () => {})
  await systems.stop()
  const store = await openWriteStore(url)
  const { id, token, hash } = createToken()
  const never = { expires_at: null, revoked_at: null }
  await store.saveToken({ id, name: 'released', hash, customers: null, created_at: Date.now(), ...never })
  const records = await store.readInvoices(null, 10_000)
  const invoices = records.map(({ summary }): Invoice => JSON.parse(summary))
  await store.close()

  const shared = {
    host: '127.0.0.1',
    port: 0,
    rateLimit: null,
    web: false,
    stripe: null,
    invoiceXpress: null,
  }
  const { address, stop } = await startApi({ ...shared, url, log })
  const answers: Record<string, { status: number; body: unknown }> = {}
  for (const asked of systems.customers
    .slice(0, 2)
    .flatMap(({ customer_id }) => requests(customer_id, invoices))) {
    const answer = await fetch(`${address}/api/v1/client/${asked}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    const body = JSON.parse(await answer.text())
    // Texts of errors may change.
    answers[asked] = { status: answer.status, body: answer.ok ? body : { error: { code: body.error.code } } }
  }
  await stop()
  return JSON.stringify({ token, answers })
}

function requests(customer: string, invoices: readonly Invoice[]): string[] {
  const pages = ['', '?page=2', '?page_size=50', '?status=paid', '?status=draft,open&page_size=5&page=2']
  const filters = ['?ix_status=final', '?date_from=2026-01-01&date_to=2026-06-30', '?q=in_', '?q=000']
  const own = invoices.filter(({ customer_id }) => customer_id === customer).slice(0, 8)
  return [
    ...[...pages, ...filters].map(query => `${customer}/invoices${query}`),
    ...[`${customer}/summary`, `${customer}/changes?after=0`, `${customer}/invoice/in_none`],
    ...own.flatMap(({ id }) => [`${customer}/invoice/${id}`, `${customer}/invoice/${id}/document`]),
  ]
}

function copyFile(): Buffer {
  const db = new DatabaseSync(path)
  db.exec(`VACUUM INTO '${path}.copy'`)
  db.close()
  return readFileSync(`${path}.copy`)
}

/** Without the lines that are for psql. */
function dumpDatabase(): string {
  const options = ['--inserts', '--no-owner', '--no-privileges', '-n', 'fatura', '-d', database]
  const dump = execFileSync('pg_dump', options, { encoding: 'utf8', maxBuffer: 1 << 28 })
  return dump.replace(/^\\.*$/gm, '')
}
