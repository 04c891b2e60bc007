/**
 * `npm run mutate:all`: makes one small mistake after the other in the code that decides about data, and runs the nearest tests. Stops after an
 * hour, and goes on there the next time: results are kept in build/mutants.jsonl. `-- --room sync` takes one room, `-- --minutes 5` another
 * time, `-- --survivors` prints the mistakes that no test noticed. A changed file is tried again.
 */
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import {
  appendFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { findTests } from '../../scripts/tests-for.ts'
import { needed, runSql } from '../support/databases/engines.ts'
import { globalSetup, globalTeardown } from '../support/databases/postgres-server.ts'
import { applyMutant, findMutants, type Mutant } from './mutants.ts'

/** What is changed. Its own tests run first, where it has some that need no store. */
interface Room {
  files: readonly string[]
  fast?: readonly string[]
  /** Worlds of the simulator that run last. */
  worlds?: readonly string[]
  /** Names of tests that show nothing about it. */
  skip?: string
}

const onSqlite = ['--seeds', '150', '--short', '--most', '1']
const onPostgres = ['--seeds', '12', '--short', '--most', '1', '--postgres']

const rooms: Readonly<Record<string, Room>> = {
  domain: { files: ['src/domain/*.ts'], worlds: onSqlite },
  linking: { files: ['src/domain/link/*.ts'], fast: ['test/domain/link/*.test.ts'], worlds: onSqlite },
  stripe: {
    files: ['src/sources/stripe/map-*.ts', 'src/sources/stripe/read-*.ts', 'src/sources/platform-invoice.ts'],
  },
  invoicexpress: { files: ['src/sources/invoicexpress/map-*.ts', 'src/sources/invoicexpress/read-*.ts'] },
  sync: { files: ['src/sync/*.ts', 'src/sync/documents/*.ts', 'src/sync/invoices/*.ts'], worlds: onSqlite },
  import: { files: ['src/sync/import/*.ts'] },
  'store, shared': { files: ['src/store/*.ts', 'src/store/sql/*.ts'], worlds: onSqlite },
  'store, SQLite': { files: ['src/store/sqlite/*.ts'], worlds: onSqlite, skip: 'on (postgres|citus)' },
  'store, PostgreSQL': {
    files: ['src/store/postgres/*.ts', 'src/store/postgres/functions.sql'],
    worlds: onPostgres,
    skip: 'on sqlite|functions.sql contains',
  },
  checks: { files: ['src/operations/reconcile/*.ts', 'src/operations/report/*.ts', 'src/operations/*.ts'] },
}

/** Tests of these folders start whole programs, or look at texts. */
const farTests = /^test\/(project|browser|campaign|cli|sandbox|sim|mutation|web)\//
const nearTests = 4
const workers = 2
/** Time for one command, in milliseconds. A mistake that makes a test hang is noticed, too. */
const patienceMs = 90_000

const { values } = parseArgs({
  options: {
    room: { type: 'string' },
    minutes: { type: 'string', default: '60' },
    survivors: { type: 'boolean', default: false },
  },
})
const resultsFile = new URL('../../build/mutants.jsonl', import.meta.url)
const root = new URL('../..', import.meta.url).pathname

interface Candidate {
  room: string
  file: string
  source: string
  mutant: Mutant
  id: string
}

interface Result {
  id: string
  room: string
  file: string
  line: number
  before: string
  after: string
  /** `the database`: it refused the mistake. */
  noticedBy: 'its own tests' | 'near tests' | 'simulator' | 'the database' | null
}

function listCandidates(): Candidate[] {
  return (
    Object.entries(rooms)
      .filter(([room]) => values.room === undefined || room === values.room)
      .flatMap(([room, { files }]) =>
        globSync(files as string[], { cwd: root }).flatMap(file => {
          const source = readFileSync(join(root, file), 'utf8')
          return findMutants(file, source).map(mutant => {
            const id = createHash('sha256')
              .update(JSON.stringify([file, source, mutant]))
              .digest('hex')
              .slice(0, 16)
            return { room, file, source, mutant, id }
          })
        }),
      )
      // The order is random and always the same, so that any part of it stands for the whole.
      .sort((a, b) => (a.id < b.id ? -1 : 1))
  )
}

function readResults(): Map<string, Result> {
  const lines = existsSync(resultsFile) ? readFileSync(resultsFile, 'utf8').split('\n').filter(Boolean) : []
  return new Map(lines.map(line => JSON.parse(line) as Result).map(result => [result.id, result]))
}

type NoticedBy = Exclude<Result['noticedBy'], null>

/** Commands that may notice a mistake in a file, the fastest first. */
function listCommands(room: string, file: string): [NoticedBy, string[]][] {
  const { fast = [], worlds, skip } = rooms[room] as Room
  const near = findTests(file)
    .map(({ test }) => test)
    .filter(test => !farTests.test(test))
    .slice(0, nearTests)
  const test = ['--test', '--test-isolation=none', '--test-reporter=./scripts/first-failure.ts']
  const skipped = skip === undefined ? [] : [`--test-skip-pattern=/${skip}/`]
  const own = globSync(fast as string[], { cwd: root })
  const commands: [NoticedBy, string[]][] = []
  if (own.length > 0) commands.push(['its own tests', [...test, ...own]])
  if (near.length > 0) commands.push(['near tests', [...test, ...skipped, ...near]])
  if (worlds !== undefined) commands.push(['simulator', ['test/sim/run.ts', ...worlds]])
  return commands
}

/** Whether a command ends well within its time. */
function passes(folder: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<boolean> {
  const child = spawn(process.execPath, args, { cwd: folder, env, stdio: 'ignore', detached: true })
  const end = () => child.pid !== undefined && process.kill(-child.pid, 'SIGKILL')
  const timer = setTimeout(end, patienceMs)
  return new Promise(resolve =>
    child.once('exit', code => {
      clearTimeout(timer)
      try {
        end()
      } catch {
        // Nothing of its group is left.
      }
      resolve(code === 0)
    }),
  )
}

function copyTree(): string {
  const folder = mkdtempSync(join(tmpdir(), 'fatura-mutants-'))
  for (const name of [
    'src',
    'sandbox',
    'test',
    'scripts',
    'package.json',
    'build',
    'openapi.json',
    'docs',
    'ops',
    'bin',
  ])
    cpSync(join(root, name), join(folder, name), {
      recursive: true,
      filter: path => !path.endsWith('node_modules') && !path.includes('/test/store/released'),
    })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  symlinkSync(join(root, 'tools/node_modules'), join(folder, 'test/node_modules'))
  return folder
}

/** Files whose tests pass as long as nothing is changed. */
const sound = new Set<string>()

async function tryOne(folder: string, { room, file, source, mutant, id }: Candidate): Promise<Result> {
  const path = join(folder, file)
  if (!sound.has(file)) {
    const failing = await findNotice(folder, room, file)
    if (failing !== null) throw new Error(`Without any mistake, this fails for ${file}: ${failing}`)
    sound.add(file)
  }
  writeFileSync(path, applyMutant(source, mutant))
  const noticedBy = await findNotice(folder, room, file)
  writeFileSync(path, source)
  const line = source.slice(0, mutant.start).split('\n').length
  const before = source.slice(mutant.start, mutant.end).slice(0, 200)
  return { id, room, file, line, before, after: mutant.text.slice(0, 200), noticedBy }
}

async function findNotice(folder: string, room: string, file: string): Promise<Result['noticedBy']> {
  const isFunctions = file.endsWith('functions.sql')
  const template = isFunctions ? await createTemplate(folder) : needed('TEST_POSTGRES_TEMPLATE')
  // SQL that PostgreSQL does not take is no mistake that anybody ships.
  if (template === null) return 'the database'
  try {
    const env = { ...process.env, TEST_POSTGRES_TEMPLATE: template }
    for (const [name, args] of listCommands(room, file)) if (!(await passes(folder, args, env))) return name
    return null
  } finally {
    if (isFunctions) await runSql(needed('TEST_POSTGRES_URL'), `DROP DATABASE ${template} WITH (FORCE)`)
  }
}

/** A database with the functions of the copy; null when PostgreSQL refuses them. */
async function createTemplate(folder: string): Promise<string | null> {
  const name = `fatura_mutant_${randomBytes(6).toString('hex')}`
  await runSql(needed('TEST_POSTGRES_URL'), `CREATE DATABASE ${name}`)
  const migrate = ['src/cli/main.ts', 'migrate', '--database-url', needed('TEST_POSTGRES_URL') + name]
  if (await passes(folder, migrate, process.env)) return name
  await runSql(needed('TEST_POSTGRES_URL'), `DROP DATABASE ${name} WITH (FORCE)`)
  return null
}

function formatTable(results: Iterable<Result>, total: ReadonlyMap<string, number>): string {
  const byRoom = Map.groupBy(results, ({ room }) => room)
  const head = ['Room', 'Mistakes', 'Tried', 'Noticed', 'by the simulator alone', 'Score']
  const rows = [...total].map(([room, count]) => {
    const tried = (byRoom.get(room) ?? []).filter(({ noticedBy }) => noticedBy !== 'the database')
    const noticed = tried.filter(({ noticedBy }) => noticedBy !== null)
    const bySimulator = noticed.filter(({ noticedBy }) => noticedBy === 'simulator')
    const score = tried.length === 0 ? '–' : `${((noticed.length / tried.length) * 100).toFixed(1)} %`
    return [room, count, tried.length, noticed.length, bySimulator.length, score]
  })
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |`
  return [line(head), `|---|${'---:|'.repeat(head.length - 1)}`, ...rows.map(line)].join('\n')
}

const all = listCandidates()
const known = readResults()
const total = new Map([...Map.groupBy(all, ({ room }) => room)].map(([room, some]) => [room, some.length]))
const current = () => all.flatMap(({ id }) => known.get(id) ?? [])
if (values.survivors) {
  for (const { file, line, before, after, noticedBy } of current())
    if (noticedBy === null)
      process.stdout.write(`${file}:${line}  ${JSON.stringify(before)} → ${JSON.stringify(after)}\n`)
} else await runAll()

async function runAll(): Promise<void> {
  const until = performance.now() + Number(values.minutes) * 60_000
  await globalSetup()
  const waiting = all.filter(({ id }) => !known.has(id))
  const folders = Array.from({ length: workers }, copyTree)
  try {
    await Promise.all(
      folders.map(async folder => {
        for (
          let next = waiting.shift();
          next !== undefined && performance.now() < until;
          next = waiting.shift()
        ) {
          const result = await tryOne(folder, next)
          known.set(result.id, result)
          appendFileSync(resultsFile, `${JSON.stringify(result)}\n`)
          if (known.size % 25 === 0) process.stderr.write(`${known.size} tried, ${waiting.length} wait …\n`)
        }
      }),
    )
  } finally {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
    await globalTeardown()
  }
  process.stdout.write(`${formatTable(current(), total)}\n`)
}
