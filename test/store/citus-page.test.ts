/** The steps of docs/postgresql.md, as they stand there, on the nodes of the tests' cluster: with names of their own, and no passwords. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createCli, createStoredToken } from '../support/clients/cli.ts'
import { citusNodes, dropDatabase, skipCitus } from '../support/databases/citus-cluster.ts'
import { runSql } from '../support/databases/engines.ts'
import { makeRecord } from '../support/worlds/records.ts'

const read = (page: string) => readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8')

function blocksOf(page: string, heading: string): string[] {
  const [, section = ''] = read(page).split(`# ${heading}\n`)
  const [text = ''] = section.split(/\n##+ /)
  return [...text.matchAll(/```sql\n([\s\S]*?)```/g)].map(([, block = '']) => block)
}

test('the steps of docs/postgresql.md lead to a Citus cluster that can be written and read', {
  skip: skipCitus,
}, async t => {
  const nodes = await citusNodes()
  const suffix = randomBytes(4).toString('hex')
  const name = `fatura_${suffix}`
  const roles = ['owner', 'writer', 'api'].map(role => `fatura_${role}_${suffix}`)
  const places = nodes.map(node => new URL(node))
  const fill = (block: string) =>
    block
      .replace(/\bfatura_(owner|writer|api)\b/g, `fatura_$1_${suffix}`)
      .replace(/DATABASE fatura\b/g, `DATABASE ${name}`)
      .replace(/'10\.0\.0\.(\d)', 5432/g, (_, place) => {
        const { hostname, port } = places[Number(place) - 1] ?? assert.fail(`the page has a node ${place}`)
        return `'${hostname}', ${port}`
      })
  /** In one session, a statement at a time: a database is not created within a transaction. */
  const run = async (url: string, block: string) => {
    const [first = '', ...others] = fill(block)
      .split(/;\s*\n/)
      .filter(statement => statement.trim() !== '')
    await runSql(url, first, ...others)
  }
  const [eachNode = '', eachDatabase = '', coordinator = '', ...rest] = blocksOf(
    'postgresql.md',
    'Setting it up',
  )
  assert.deepEqual(rest, [])
  const [, grants = ''] = blocksOf('postgresql.md', 'Roles')
  t.after(async () => {
    await dropDatabase(name)
    for (const node of nodes)
      await runSql(
        `${node}postgres`,
        'SET citus.enable_ddl_propagation = off',
        `DROP ROLE IF EXISTS ${roles.join(', ')}`,
      )
  })
  for (const node of nodes) await run(`${node}postgres`, eachNode)
  for (const node of nodes) await run(node + name, eachDatabase)
  await run(nodes[0] + name, coordinator)
  const as = (role: string, node = nodes[0] ?? '') => {
    const url = new URL(node + name)
    url.username = `fatura_${role}_${suffix}`
    return url.href
  }
  const cli = await createCli(t)
  const fatura = async (role: string, args: string[], input = '') => {
    const { code, stdout, stderr } = await cli.run(args, { env: { DATABASE_URL: as(role) }, input })
    assert.equal(code, 0, stderr)
    return stdout
  }
  await fatura('owner', ['migrate'])
  await run(as('owner'), grants)
  const { invoice } = makeRecord({ id: 'in_1' })
  await fatura('writer', ['import', '-'], `${JSON.stringify(invoice)}\n`)
  const doctor = await cli.run(['doctor'], { env: { DATABASE_URL: as('writer') } })
  assert.match(doctor.stdout, /^ok +Database: nodes +all \d answer/m)
  assert.match(doctor.stdout, /^ok +Database: Citus /m)
  assert.match(doctor.stdout, /^ok +Database: role /m)
  const token = await createStoredToken(as('writer'), null)
  for (const node of nodes) {
    const api = await cli.serve([], { env: { DATABASE_URL: as('api'), DATABASE_READ_URL: as('api', node) } })
    assert.equal((await api.get('/api/v1/client/cus_ana/invoices', token)).status, 200)
  }
})
