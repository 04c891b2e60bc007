/** Commands that only look open a store that cannot write. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { openOperatorStore, openWriteStore } from '../../src/store/engines.ts'
import { createCli } from '../support/clients/cli.ts'
import { engines, postgresServer, runSql } from '../support/databases/engines.ts'
import { makeRecord } from '../support/worlds/records.ts'

const lookingCommands = [
  ['status'],
  ['account', 'show'],
  ['explain', 'in_a'],
  ['reconcile'],
  ['report', 'vat', '--month', '2026-10'],
  ['export', '--lines'],
  ['doctor', '--sample', '0'],
] as const

async function fill(url: string): Promise<void> {
  const store = await openWriteStore(url)
  await store.transaction(tx => tx.saveInvoices([makeRecord({ id: 'in_a' })]))
  await store.close()
}

for (const engine of engines)
  describe(`the store of read-only commands on ${engine.name}`, () => {
    it('has no method that writes', async t => {
      const url = await engine.createStore(t)
      await fill(url)
      const [writer, operator] = [await openWriteStore(url), await openOperatorStore(url)]
      t.after(() => Promise.all([writer.close(), operator.close()]))
      const onlyWriter = Object.keys(writer).filter(name => !(name in operator))
      assert.deepEqual(onlyWriter.sort(), [
        'addWebhook',
        'changeWebhook',
        'releaseLease',
        'removeWebhook',
        'renewLease',
        'renewLife',
        'repairCounts',
        'revokeKey',
        'revokeToken',
        'saveKey',
        'saveToken',
        'takeLease',
        'transaction',
      ])
      assert.equal(await operator.checkCounts(), 0)
    })
  })

describe('read-only commands', () => {
  it('work on PostgreSQL with a role that may only read', async t => {
    const url = await (engines[1] as (typeof engines)[number]).createStore(t)
    await fill(url)
    const name = `looker_${new URL(url).pathname.slice(1)}`
    await runSql(
      url,
      `CREATE ROLE ${name} LOGIN PASSWORD 'test'; GRANT USAGE ON SCHEMA fatura TO ${name};
       GRANT SELECT ON ALL TABLES IN SCHEMA fatura TO ${name}`,
    )
    t.after(() => runSql(postgresServer(), `DROP ROLE IF EXISTS ${name}`))
    const address = new URL(url)
    address.username = name
    address.password = 'test'
    const cli = await createCli(t)
    for (const args of lookingCommands) {
      const { stdout, stderr } = await cli.run(args, { env: { DATABASE_URL: address.href } })
      assert.doesNotMatch(
        stdout.replace(/^.*role.*$/gm, '') + stderr,
        /may not do this|permission denied/,
        args.join(' '),
      )
    }
  })

  it('work on a locked SQLite store and change no byte of it', async t => {
    const cli = await createCli(t)
    await cli.createToken()
    await fill(`sqlite:${cli.database}`)
    const other = new DatabaseSync(cli.database)
    t.after(() => other.close())
    const digest = async () =>
      createHash('sha256')
        .update(await readFile(cli.database))
        .digest('hex')
    const before = await digest()
    other.exec('BEGIN IMMEDIATE')
    for (const args of lookingCommands) {
      const { stderr } = await cli.run(args)
      assert.doesNotMatch(stderr, /Waiting|locked/, args.join(' '))
    }
    other.exec('ROLLBACK')
    assert.equal(await digest(), before)
  })
})
