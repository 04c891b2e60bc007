/** A store on several servers: the hosts of an address, and the nodes of Citus. */
import type { HostFacts, NodeFacts } from '../store/facts.ts'
import type { Report } from './findings.ts'

/** On Citus, a table that was not distributed still works, on one node alone. */
export function checkPlaces(report: Report, misplaced: readonly string[]): void {
  const check = report('Database: Citus')
  if (misplaced.length === 0) check.ok('every table and function lies where it should')
  else
    check.fail(
      `not spread as they should be: ${misplaced.join(', ')}`,
      'Stop what writes, and run: fatura migrate',
    )
}

export function checkHosts(report: Report, hosts: readonly HostFacts[]): void {
  const newest = Math.max(...hosts.map(({ is }) => is?.timeline ?? 0))
  for (const { at, is } of hosts) {
    const host = report(`Database: host ${at}`)
    if (is === null) host.warn('it does not answer', 'Start it, or take it out of DATABASE_URL.')
    else if (is.standby) host.ok('a standby')
    else if (is.timeline === newest) host.ok('the primary')
    else
      host.fail(
        'a former primary: another was promoted since, and it is left out',
        'Make it a standby of the other one, or stop it: a client that connects to it alone sees, and may write, old content.',
      )
  }
}

/** On Citus, a node that is down or takes no writes affects the customers on it. */
export function checkNodes(report: Report, nodes: readonly NodeFacts[]): void {
  for (const { at, failure, isStandby, isReadOnly, stuck, isPublic } of nodes) {
    const node = report(`Database: node ${at}`)
    if (failure !== null)
      node.fail(
        `it does not answer: ${failure.split('\n')[0]}`,
        'Start it: its customers get 503 until then.',
      )
    if (isStandby)
      node.fail(
        'it is a standby, and takes no writes',
        'Promote it, or lead Citus to the primary: citus_update_node.',
      )
    else if (isReadOnly)
      node.fail(
        'its sessions are read-only: its customers cannot be written to',
        'On that node: ALTER SYSTEM RESET default_transaction_read_only; SELECT pg_reload_conf(); or the same of the database, or the role.',
      )
    if (stuck > 0)
      node.warn(
        `${stuck} transactions are prepared for over a minute: they hold their locks`,
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
  if (nodes.every(isFine)) report('Database: nodes').ok(`all ${nodes.length} answer and take writes`)
}
