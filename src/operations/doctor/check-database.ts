/** Checks that the store can be reached, has the right version and grants the right permissions. */
import { findDamage, openReadStore, readFacts, useStore } from '../../store/engines.ts'
import {
  type FileFacts,
  type NodeFacts,
  type ServerFacts,
  type StoreFacts,
  supportedMajors,
  whatServerLacks,
} from '../../store/facts.ts'
import { checkClock, formatSpan } from './check-clock.ts'
import { type Report, restoreAdvice } from './findings.ts'

/** Returns false when the other checks cannot open the store. */
export async function checkDatabase(report: Report, url: string): Promise<boolean> {
  const database = report('Database')
  const before = Date.now()
  const facts = await database.attempt('Correct DATABASE_URL, or repair the database.', () => readFacts(url))
  if (facts === null) return false
  const after = Date.now()
  const { engine, server, file } = facts
  const lack = server && whatServerLacks(server)
  if (lack !== null) {
    database.fail(lack.found, lack.next)
    return false
  }
  if (server !== null && server.major > supportedMajors.newest)
    database.warn(
      `${engine} answers`,
      `Fatura is tested on PostgreSQL ${supportedMajors.oldest} to ${supportedMajors.newest}. Look for a newer version of Fatura.`,
    )
  else database.ok(`${engine} answers${server?.misplaced ? ', with Citus' : ''}`)
  if (server !== null && !checkStatements(report, 'Database', server)) return false
  const isCurrent = checkSchema(report, 'Database: schema', facts)
  if (file !== null) checkFile(report, file)
  if (server === null) return isCurrent
  if (server.nodes !== null) checkNodes(report, server.nodes)
  if (isCurrent && server.misplaced !== null) checkDistribution(report, server.misplaced)
  checkClock(report, 'the database', { theirs: server.clock, before, after, grain: 0 })
  return isCurrent && checkRights(report, server)
}

/** Returns false when a connection pooler mixes up prepared statements, because reads would then fail under load. */
function checkStatements(report: Report, name: string, { keepsStatements }: ServerFacts): boolean {
  if (!keepsStatements)
    report(`${name}: prepared statements`).fail(
      'a program in between (for example PgBouncer in transaction mode) mixes the prepared statements of its clients',
      'Use PgBouncer 1.21 or newer with max_prepared_statements = 100, or pool_mode = session.',
    )
  return keepsStatements
}

function checkSchema(report: Report, check: string, { schema, schemaProblem }: StoreFacts): boolean {
  const [what = '', ...remedy] = schemaProblem?.split(/(?<=\.) /) ?? []
  if (schemaProblem === null) report(check).ok(`version ${schema}`)
  else report(check).fail(what.replace(/\.$/, ''), remedy.join(' '))
  return schemaProblem === null
}

/** The check reads every page of the file, which takes some seconds per gigabyte. */
const integrityLimitMs = 30 * 60_000

/** Returns false when the file is damaged. */
export async function checkIntegrity(report: Report, url: string, isDeep: boolean): Promise<boolean> {
  const check = report('Database: integrity')
  const whole = await check.attempt(
    restoreAdvice,
    async () => {
      const damage = await findDamage(url, isDeep)
      if (damage === null) return true
      if (damage.length > 0) check.fail(`the file is damaged: ${damage.join('; ')}`, restoreAdvice)
      else check.ok(`${isDeep ? 'integrity_check' : 'quick_check'} found no damage`)
      return damage.length === 0
    },
    integrityLimitMs,
  )
  return whole === true
}

/** Twice the size at which SQLite normally writes the log back into the file. */
const logToWarnBytes = 128 * 1024 * 1024

function checkFile(report: Report, facts: FileFacts): void {
  const { path, journalMode, logBytes, isWritable, isPublic, isOpenToAll } = facts
  const file = report('Database: file')
  const chmod = `Run: chmod 600 ${path}`
  if (!isWritable)
    file.fail(
      'this user may not write to the file or its folder',
      'SQLite needs this permission even to read. Run Fatura as the owner of the file and the folder.',
    )
  else if (isOpenToAll) file.fail('every user of this machine may change the file', chmod)
  else if (isPublic) file.warn('every user of this machine may read the file', chmod)
  else file.ok('this user may write to the file, and not every user may read it')
  const journal = report('Database: journal')
  const log = `WAL, ${Math.ceil(logBytes / 1024 / 1024)} MB`
  if (journalMode !== 'wal')
    journal.warn(
      `the journal mode is ${journalMode} and not WAL, so readers and writers wait for each other`,
      'Run: fatura migrate',
    )
  else if (logBytes <= logToWarnBytes) journal.ok(log)
  else
    journal.warn(
      `${log}, which is large. A large import is running, or a long read stops SQLite from emptying it`,
      'End long reads, for example an open sqlite3 session or a backup that hangs. The next write makes it small again.',
    )
}

/** On Citus, a table that was not distributed still works, but only one node holds its rows. */
function checkDistribution(report: Report, misplaced: readonly string[]): void {
  const check = report('Database: Citus')
  if (misplaced.length === 0) check.ok('every table and function is on the right nodes')
  else
    check.fail(
      `not on the right nodes: ${misplaced.join(', ')}`,
      'Stop all programs that write to the store, and run: fatura migrate',
    )
}

/** On Citus, a node that is down or read-only affects the customers whose rows it holds. */
function checkNodes(report: Report, nodes: readonly NodeFacts[]): void {
  for (const { at, failure, isStandby, isReadOnly, stuck, isPublic } of nodes) {
    const node = report(`Database: node ${at}`)
    if (failure !== null)
      node.fail(
        `it does not answer: ${failure.split('\n')[0]}`,
        'Start this node. Requests of its customers get 503 until then.',
      )
    if (isStandby)
      node.fail(
        'it is a standby and accepts no writes',
        'Promote it, or point Citus to the primary with citus_update_node.',
      )
    else if (isReadOnly)
      node.fail(
        'its sessions are read-only, so data of its customers cannot be written',
        'On that node: ALTER SYSTEM RESET default_transaction_read_only; SELECT pg_reload_conf(). Reset the same setting of the database and the role, if they have it.',
      )
    if (stuck > 0)
      node.warn(
        `${stuck} transactions have been prepared for over a minute and still hold their locks`,
        'On the coordinator, as a superuser: SELECT recover_prepared_transactions()',
      )
    if (isPublic)
      node.warn(
        'every role may connect to the database',
        'On that node: SET citus.enable_ddl_propagation = off; REVOKE CONNECT, TEMPORARY ON DATABASE … FROM PUBLIC',
      )
  }
  const isFine = ({ failure, isStandby, isReadOnly, stuck, isPublic }: NodeFacts) =>
    failure === null && !isStandby && !isReadOnly && stuck === 0 && !isPublic
  if (nodes.every(isFine)) report('Database: nodes').ok(`all ${nodes.length} answer and accept writes`)
}

/** Returns false when the role may not read the tables that other checks need. */
function checkRights(report: Report, { role, tables, unwritable, lag }: ServerFacts): boolean {
  const check = report('Database: role')
  const writer =
    'Set DATABASE_URL to the address of the role that writes. "fatura doctor" needs it to continue. "fatura serve" does not.'
  const mayWriteSome = unwritable.length < tables.length
  if (lag !== null) check.warn(`${role} is connected to a replica, where "fatura sync" cannot write`, writer)
  else if (unwritable.length === 0) check.ok(`${role} may read and write every table`)
  else if (!mayWriteSome) check.warn(`${role} may not write to any table, like the API's role`, writer)
  else
    check.fail(
      `${role} may not read and write ${unwritable.join(', ')}`,
      `As the owner: GRANT SELECT, INSERT, UPDATE, DELETE ON ${unwritable.map(name => `fatura.${name}`).join(', ')} TO ${role}`,
    )
  return lag === null ? unwritable.length === 0 : mayWriteSome
}

/** Delay of a replica above which the doctor warns, because the API's data is visibly old. */
const lagToWarnMs = 60_000

/** Checks the store of DATABASE_READ_URL. `syncedAt` is the freshness of the writer's store, null when unknown. */
export async function checkReadStore(report: Report, url: string, syncedAt: number | null): Promise<void> {
  const name = 'Database: reading'
  const [reading, delay] = [report(name), report(`${name}, delay`)]
  const found = await reading.attempt('Correct DATABASE_READ_URL, or repair the replica.', async () => {
    const facts = await readFacts(url)
    return { facts, synced_at: facts.schemaProblem === null ? await readFreshness(url) : null }
  })
  if (found === null || !checkSchema(report, `${name}, schema`, found.facts)) return
  const { facts, synced_at } = found
  if (facts.server !== null && !checkStatements(report, name, facts.server)) return
  if (facts.isReadOnly) reading.ok(`${facts.engine} answers, and sessions are read-only`)
  else
    reading.warn(
      'sessions may write, because a program in between (for example PgBouncer) drops their options',
      'Run: ALTER ROLE … SET default_transaction_read_only = on',
    )
  const olderMs = syncedAt === null ? 0 : syncedAt - (synced_at ?? 0)
  const behindMs = Math.max(facts.server?.lag ?? 0, olderMs)
  const behind = `${formatSpan(behindMs)} behind DATABASE_URL`
  if (synced_at === null && syncedAt !== null)
    delay.warn(
      'it holds no data of DATABASE_URL',
      'Check that DATABASE_READ_URL is a replica of DATABASE_URL.',
    )
  else if (behindMs <= lagToWarnMs) delay.ok(behind)
  else delay.warn(behind, 'Check the replication, because the answers of the API are equally old.')
}

/** Reads the freshness in the same way as the API. All customers have the same freshness. */
export function readFreshness(url: string): Promise<number | null> {
  return useStore(openReadStore(url), async store => (await store.readFreshness()).synced_at)
}

/** The check counts all rows again, which takes at most about a minute per million rows. */
const recountLimitMs = 2 * 60 * 60_000

/** Compares stored totals and counters with a recount. With `isRepair`, `count` also replaces the wrong ones. */
export async function checkCounters(report: Report, count: () => Promise<number>, isRepair: boolean) {
  const counters = report('Database: counters')
  const wrong = await counters.attempt('Try again when the database is less busy.', count, recountLimitMs)
  if (wrong === null) return
  if (wrong === 0) counters.ok('all are correct')
  else if (isRepair) counters.ok(`${wrong} were wrong and are repaired`)
  else counters.fail(`${wrong} are wrong`, 'Run: fatura doctor --repair. Also report this bug.')
}
