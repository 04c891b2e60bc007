/** A store on several servers: the hosts of an address, and the nodes of Citus. */
import type { HostFacts, NodeFacts } from '../store/facts.ts'
import type { Reporter } from './findings.ts'

/** On Citus a table that was not spread is read and written all the same, by one node alone. */
export function checkPlaces(report: Reporter, misplaced: readonly string[]): void {
  const check = 'Database: Citus'
  if (misplaced.length === 0) report.ok(check, 'every table and function lies where it should')
  else
    report.fail(
      check,
      `not spread as they should be: ${misplaced.join(', ')}`,
      'Stop what writes, and run: fatura migrate',
    )
}

/** Of an address that names several. */
export function checkHosts(report: Reporter, hosts: readonly HostFacts[]): void {
  const newest = Math.max(...hosts.map(({ is }) => is?.timeline ?? 0))
  for (const { at, is } of hosts) {
    const check = `Database: host ${at}`
    if (is === null) report.warn(check, 'it does not answer', 'Start it, or take it out of DATABASE_URL.')
    else if (is.standby) report.ok(check, 'a standby')
    else if (is.timeline === newest) report.ok(check, 'the primary')
    else
      report.fail(
        check,
        'a former primary: another was promoted since, and it is left out',
        'Make it a standby of the other one, or stop it: whoever connects to it alone sees, and may write, old content.',
      )
  }
}

/** On Citus one node that is down, or takes no writes, keeps its own customers from theirs. */
export function checkNodes(report: Reporter, nodes: readonly NodeFacts[]): void {
  let isWell = true
  const tell = (how: 'warn' | 'fail', at: string, detail: string, next: string) => {
    isWell = false
    report[how](`Database: node ${at}`, detail, next)
  }
  for (const { at, failure, isStandby, isReadOnly, stuck, isPublic } of nodes) {
    if (failure !== null)
      tell(
        'fail',
        at,
        `it does not answer: ${failure.split('\n')[0]}`,
        'Start it: its customers get 503 until then.',
      )
    if (isStandby)
      tell(
        'fail',
        at,
        'it is a standby, and takes no writes',
        'Promote it, or lead Citus to the primary: citus_update_node.',
      )
    else if (isReadOnly)
      tell(
        'fail',
        at,
        'its sessions are read-only: its customers cannot be written to',
        'On that node: ALTER SYSTEM RESET default_transaction_read_only; SELECT pg_reload_conf(); or the same of the database, or the role.',
      )
    if (stuck > 0)
      tell(
        'warn',
        at,
        `${stuck} transactions are prepared for over a minute: they hold their locks`,
        'On the coordinator, as a superuser: SELECT recover_prepared_transactions()',
      )
    if (isPublic)
      tell(
        'warn',
        at,
        'every role may connect to the database',
        'On that node: SET citus.enable_ddl_propagation = off; REVOKE CONNECT, TEMPORARY ON DATABASE … FROM PUBLIC',
      )
  }
  if (isWell) report.ok('Database: nodes', `all ${nodes.length} answer and take writes`)
}
