/** The store, as an operator must know it: reachable, of the right version, written and read by the right users. */
import {
  type FileFacts,
  type ServerFacts,
  type StoreFacts,
  supportedMajors,
  whatServerLacks,
} from '../store/facts.ts'
import type { OnRecounted, OperatorStore, ReadStore, WriteStore } from '../store/store.ts'
import { checkClock, tellSpan } from './check-clock.ts'
import { checkHosts, checkNodes, checkPlaces } from './check-nodes.ts'
import { attempt, type Reporter, restoreAdvice } from './findings.ts'

/** A replica that is further behind shows it to whoever reads. */
const lagToWarnMs = 60_000

export interface StoreAccess {
  /** Host and port, where there are several; null for the only one. */
  at: string | null
  readFacts(): Promise<StoreFacts>
  openRead(): Promise<ReadStore>
}

/** Says whether the store can be opened for the checks that read it. */
export async function checkDatabase(
  report: Reporter,
  readFacts: () => Promise<StoreFacts>,
): Promise<boolean> {
  const before = Date.now()
  const facts = await attempt(report, 'Database', 'Correct DATABASE_URL, or repair the database.', readFacts)
  if (facts === null) return false
  const after = Date.now()
  const { engine, server, file } = facts
  const lack = server && whatServerLacks(server)
  if (lack !== null) {
    report.fail('Database', lack.found, lack.next)
    return false
  }
  if (server !== null && server.major > supportedMajors.newest)
    report.warn(
      'Database',
      `${engine} answers`,
      `Fatura is tested on PostgreSQL ${supportedMajors.oldest} to ${supportedMajors.newest}; look for a newer Fatura.`,
    )
  else report.ok('Database', `${engine} answers${server?.misplaced ? ', with Citus' : ''}`)
  const isCurrent = checkSchema(report, 'Database: schema', facts)
  if (file !== null) checkFile(report, file)
  if (server === null) return isCurrent
  checkHosts(report, server.hosts)
  if (server.nodes !== null) checkNodes(report, server.nodes)
  if (isCurrent && server.misplaced !== null) checkPlaces(report, server.misplaced)
  checkClock(report, 'the database', { theirs: server.clock, before, after, grain: 0 })
  return isCurrent && checkRights(report, server)
}

function checkSchema(report: Reporter, check: string, { schema, schemaProblem }: StoreFacts): boolean {
  if (schemaProblem === null) report.ok(check, `version ${schema}`)
  else {
    const [what = '', ...toDo] = schemaProblem.split(/(?<=\.) /)
    report.fail(check, what.replace(/\.$/, ''), toDo.join(' '))
  }
  return schemaProblem === null
}

/** Every page is looked at, which takes some seconds for each gigabyte. */
const integrityLimitMs = 30 * 60_000

/** Says whether the file can be read on. */
export async function checkIntegrity(
  report: Reporter,
  findDamage: (isDeep: boolean) => Promise<readonly string[] | null>,
  isDeep: boolean,
): Promise<boolean> {
  const check = 'Database: integrity'
  let isWhole = false
  await attempt(
    report,
    check,
    restoreAdvice,
    async () => {
      const damage = await findDamage(isDeep)
      isWhole = damage === null || damage.length === 0
      if (damage === null) return
      if (isWhole) report.ok(check, `${isDeep ? 'integrity_check' : 'quick_check'} finds no damage`)
      else report.fail(check, `the file is damaged: ${damage.join('; ')}`, restoreAdvice)
    },
    integrityLimitMs,
  )
  return isWhole
}

/** Beyond twice the size at which it is written back, something keeps it from that. */
const logToWarnBytes = 128 * 1024 * 1024

function checkFile(
  report: Reporter,
  { path, journalMode, logBytes, isWritable, isPublic, isOpenToAll }: FileFacts,
): void {
  const check = 'Database: file'
  const next = `Run: chmod 600 ${path}`
  if (!isWritable)
    report.fail(
      check,
      'this user may not write to the file or its folder',
      'SQLite needs this even to read. Run it as the owner of the file and the folder.',
    )
  else if (isOpenToAll) report.fail(check, 'every user of this machine may change it', next)
  else if (isPublic) report.warn(check, 'every user of this machine may read it', next)
  else report.ok(check, 'this user may write to it, and not everyone may read it')
  const log = `WAL, ${Math.ceil(logBytes / 1024 / 1024)} MB`
  if (journalMode === 'wal' && logBytes <= logToWarnBytes) report.ok('Database: journal', log)
  else if (journalMode === 'wal')
    report.warn(
      'Database: journal',
      `${log}: a large import is being written, or something reads for long and keeps it from being written back`,
      'End what reads, such as an open session of sqlite3 or a backup that hangs; the next write makes it small again.',
    )
  else
    report.warn(
      'Database: journal',
      `${journalMode}, not WAL: readers and writers would wait for each other`,
      'Run: fatura migrate. Any command that writes sets it too.',
    )
}

/** Says whether the role may read the tables that the other checks need. */
function checkRights(report: Reporter, { role, tables, unwritable, lag }: ServerFacts): boolean {
  const check = 'Database: role'
  const writer = "fatura doctor needs the writer's address to continue; fatura serve does not."
  if (lag !== null) {
    report.warn(check, `${role} is on a replica: fatura sync cannot write there`, writer)
    return unwritable.length < tables.length
  }
  if (unwritable.length === 0) {
    report.ok(check, `${role} may read and write every table`)
    return true
  }
  if (unwritable.length === tables.length) {
    report.warn(check, `${role} may not write to any table, like the API's role`, writer)
    return false
  }
  report.fail(
    check,
    `${role} may not read and write ${unwritable.join(', ')}`,
    `As the owner: GRANT SELECT, INSERT, UPDATE, DELETE ON ${unwritable.map(name => `fatura.${name}`).join(', ')} TO ${role}`,
  )
  return false
}

/** Where the API reads, when that is not where others write. `syncedAt` is the writers' freshness, when it is known. */
export async function checkReadStore(
  report: Reporter,
  { at, readFacts, openRead }: StoreAccess,
  syncedAt: number | null,
): Promise<void> {
  const check = at === null ? 'Database: reading' : `Database: reading at ${at}`
  const found = await attempt(
    report,
    check,
    'Correct DATABASE_READ_URL, or repair the replica.',
    async () => {
      const facts = await readFacts()
      return { facts, synced_at: facts.schemaProblem === null ? await readFreshness(openRead) : null }
    },
  )
  if (found === null) return
  const { facts, synced_at } = found
  if (!checkSchema(report, `${check}, schema`, facts)) return
  if (facts.isReadOnly) report.ok(check, `${facts.engine} answers, and its sessions are read-only`)
  else
    report.warn(
      check,
      'its sessions may write: something in between, such as PgBouncer, drops their options',
      'Run: ALTER ROLE … SET default_transaction_read_only = on',
    )
  const older = syncedAt === null ? 0 : syncedAt - (synced_at ?? 0)
  const behind = Math.max(facts.server?.lag ?? 0, older)
  if (synced_at === null && syncedAt !== null)
    report.warn(`${check}, delay`, 'it has none of the data of DATABASE_URL', 'Is it a replica of it?')
  else if (behind > lagToWarnMs)
    report.warn(
      `${check}, delay`,
      `${tellSpan(behind)} behind DATABASE_URL`,
      'Look at the replication: the answers of the API are as old.',
    )
  else report.ok(`${check}, delay`, `${tellSpan(behind)} behind DATABASE_URL`)
}

/** Reads as the API does. Freshness is the same for every customer, and for none. */
export async function readFreshness(openRead: () => Promise<ReadStore>): Promise<number | null> {
  const store = await openRead()
  try {
    return await store.readFreshness()
  } finally {
    await store.close()
  }
}

/** All the rows are counted, which takes a while in a large store: about a minute a million, at most. */
const recountLimitMs = 2 * 60 * 60_000

/** Whether what is counted ahead of time equals a recount; with `repair`, what is wrong is counted again. */
export async function checkCounters(
  report: Reporter,
  counters: { check: OperatorStore['checkCounts']; repair: WriteStore['repairCounts'] | null },
  onProgress: OnRecounted,
): Promise<void> {
  const check = 'Database: counters'
  const count = () => (counters.repair ?? counters.check)(onProgress)
  const wrong = await attempt(
    report,
    check,
    'Try again when the database is less busy.',
    count,
    recountLimitMs,
  )
  if (wrong === null) return
  if (wrong === 0) report.ok(check, 'all are right')
  else if (counters.repair !== null) report.ok(check, `${wrong} were wrong and are repaired`)
  else
    report.fail(check, `${wrong} are wrong`, 'Run: fatura doctor --repair. Please report it: this is a bug.')
}
