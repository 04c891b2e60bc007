/**
 * A Citus cluster for the tests, which outlives the run: TEST_CITUS_URL is the address of its coordinator, whose database
 * `postgres` has the extension and knows the workers. ops/citus/start-cluster.sh makes one.
 */
import { randomBytes } from 'node:crypto'
import type { TestContext } from 'node:test'
import { migrateStore } from '../../../src/store/engines.ts'
import { runSql } from './run-sql.ts'

/** Why nothing runs on Citus; false where it does. */
export const skipCitus = process.env.TEST_CITUS_URL ? false : 'TEST_CITUS_URL names no cluster'

/** The addresses of all nodes, to which a database's name is to be appended: the coordinator's first. */
export async function citusNodes(): Promise<string[]> {
  const coordinator = new URL('/', process.env.TEST_CITUS_URL)
  const { rows } = await runSql(
    `${coordinator}postgres`,
    'SELECT nodename AS host, nodeport AS port FROM pg_dist_node WHERE isactive AND groupid <> 0 ORDER BY nodeid',
  )
  const workers = rows.map(({ host, port }) => {
    const worker = new URL(coordinator)
    worker.hostname = host
    worker.port = String(port)
    return worker.href
  })
  return [coordinator.href, ...workers]
}

/**
 * A database of its own on every node, which know each other there, and nothing in it. Says the nodes' addresses. Those beyond
 * `workers` are not known to the others yet: `addWorker` adds one.
 */
export async function createCitusDatabase(
  t: TestContext,
  template?: string,
  workers = Number.POSITIVE_INFINITY,
): Promise<string[]> {
  const name = `fatura_${randomBytes(6).toString('hex')}`
  const nodes = await citusNodes()
  t.after(() => dropDatabase(name))
  await makeDatabase(nodes, name, template, workers)
  return nodes.map(node => node + name)
}

/** A migrated database that the tests' own are copied from, node by node: faster than to spread each. */
export async function prepareCitus(): Promise<void> {
  if (skipCitus) return
  const template = `fatura_template_${process.pid}`
  const nodes = await citusNodes()
  await makeDatabase(nodes, template)
  await migrateStore(nodes[0] + template)
  for (const node of nodes) await runSql(node, `ALTER DATABASE ${template} ALLOW_CONNECTIONS false`)
  process.env.TEST_CITUS_TEMPLATE = template
}

export async function forgetCitus(): Promise<void> {
  if (process.env.TEST_CITUS_TEMPLATE) await dropDatabase(process.env.TEST_CITUS_TEMPLATE)
}

export async function addWorker(coordinator: string, worker: string): Promise<void> {
  const { hostname, port } = new URL(worker)
  // It takes the roles along, which all databases share: two at a time may cross.
  const crossed = ({ message }: Error) => message.includes('connection marked as essential')
  await repeatIf(crossed, () => runSql(coordinator, `SELECT citus_add_node('${hostname}', ${port})`))
}

/** Does something again, a few times at most, as long as it fails for a reason that passes. */
async function repeatIf(
  isPassing: (error: NodeJS.ErrnoException) => boolean,
  work: () => Promise<unknown>,
): Promise<void> {
  for (let tries = 1; ; tries++)
    try {
      await work()
      return
    } catch (error) {
      if (tries === 5 || !isPassing(error as Error)) throw error
    }
}

async function makeDatabase(
  nodes: readonly string[],
  name: string,
  template = 'template1',
  known = Number.POSITIVE_INFINITY,
): Promise<void> {
  const isOurs = template !== 'template1'
  for (const node of nodes) {
    // Whoever was about to connect when that was forbidden may be there still.
    if (isOurs)
      await runSql(
        node,
        `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '${template}'`,
      )
    await runSql(node, `CREATE DATABASE ${name} TEMPLATE ${template}`)
  }
  if (isOurs) return
  const [coordinator = '', ...workers] = nodes
  for (const node of nodes) await runSql(node + name, 'CREATE EXTENSION IF NOT EXISTS citus')
  const { hostname, port } = new URL(coordinator)
  await runSql(coordinator + name, `SELECT citus_set_coordinator_host('${hostname}', ${port})`)
  for (const worker of workers.slice(0, known)) await addWorker(coordinator + name, worker)
}

/** Nodes connect to each other by themselves: so nobody may any more, at any of them, before it goes. */
export async function dropDatabase(name: string): Promise<void> {
  const nodes = await citusNodes()
  const forbid = `UPDATE pg_database SET datallowconn = false WHERE datname = '${name}'`
  for (const node of nodes) await runSql(node, forbid)
  // Citus' own process of the database may just be starting.
  const isInUse = ({ code }: NodeJS.ErrnoException) => code === '55006'
  for (const node of nodes)
    await repeatIf(isInUse, () => runSql(node, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`))
}
