/** A backup as docs/backup.md says, made while somebody writes, restored into a new store: all of it is there. */
import assert from 'node:assert/strict'
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { migrateStore, openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { createDatabase, createFolder, postgresServer, runSql } from '../support/databases/engines.ts'
import { createFilledStore, digestOf } from '../support/databases/store-rows.ts'
import { makeInvoice } from '../support/worlds/records.ts'

/** Writes one invoice after the other until it is stopped; what was committed when a backup began is in it. */
async function writeMeanwhile(
  url: string,
  backUp: () => Promise<void>,
): Promise<{ before: number; after: number }> {
  const store = await openWriteStore(url)
  let saved = 0
  let isDone = false
  const save = async () => {
    while (!isDone) {
      const invoice = makeInvoice({ id: `in_more${saved + 1}`, customer_id: 'cus_more' })
      await store.transaction(tx => tx.saveInvoices([{ invoice, lines: null }]))
      saved++
      await new Promise(setImmediate)
    }
  }
  const writing = save()
  while (saved < 3) await new Promise(setImmediate)
  const before = saved
  await backUp()
  const after = saved
  isDone = true
  await writing
  await store.close()
  return { before, after }
}

async function assertRestored(
  target: string,
  { before, after }: { before: number; after: number },
): Promise<void> {
  const reader = await openReadStore(target)
  const { total } = await reader.listInvoices({ customer_id: 'cus_more', page: 1, page_size: 50 })
  assert.ok(total >= before && total <= after + 1, `${before} ≤ ${total} ≤ ${after + 1}`)
  await reader.close()
  const writer = await openWriteStore(target)
  assert.equal(await writer.checkCounts(), 0)
  await writer.close()
}

test('a SQLite backup by VACUUM INTO during writes can be restored and migrated', async t => {
  const source = await createFilledStore(t, 'sqlite')
  const folder = await createFolder(t)
  const [quiet, busy] = [join(folder, 'quiet.db'), join(folder, 'busy.db')]
  const backUp = (path: string) => {
    const db = new DatabaseSync(source.slice('sqlite:'.length))
    db.exec(`VACUUM INTO '${path}'`)
    db.close()
  }
  backUp(quiet)
  await migrateStore(`sqlite:${quiet}`)
  assert.deepEqual(await digestOf(`sqlite:${quiet}`), await digestOf(source))

  const meanwhile = await writeMeanwhile(source, async () => backUp(busy))
  await migrateStore(`sqlite:${busy}`)
  await assertRestored(`sqlite:${busy}`, meanwhile)
})

/** Null when it can be used; else why not. */
async function whyNoDump(): Promise<string | null> {
  const { status, stdout } = spawnSync('pg_dump', ['--version'], { encoding: 'utf8' })
  if (status !== 0) return 'pg_dump is not installed'
  const tool = Number(/(\d+)(\.\d+)?/.exec(stdout)?.[1])
  const { rows } = await runSql(postgresServer(), 'SHOW server_version_num')
  const server = Math.floor(Number(rows[0]?.server_version_num) / 10_000)
  return tool < server ? `pg_dump ${tool} is older than the server, ${server}` : null
}

test('a PostgreSQL backup by pg_dump during writes can be restored into an empty database and migrated', async t => {
  const why = await whyNoDump()
  if (why !== null) return t.skip(why)
  const source = await createFilledStore(t, 'postgres')
  const folder = await createFolder(t)
  const restore = async (file: string): Promise<string> => {
    const url = await createDatabase(t)
    execFileSync('pg_restore', ['-d', url, file], { stdio: 'pipe' })
    await migrateStore(url)
    return url
  }
  const backUp = (file: string) =>
    new Promise<void>((resolve, reject) => {
      execFile('pg_dump', ['-Fc', '-n', 'fatura', '-f', file, '-d', source], error =>
        error === null ? resolve() : reject(error),
      )
    })
  await backUp(join(folder, 'quiet.dump'))
  assert.deepEqual(await digestOf(await restore(join(folder, 'quiet.dump'))), await digestOf(source))

  const meanwhile = await writeMeanwhile(source, () => backUp(join(folder, 'busy.dump')))
  await assertRestored(await restore(join(folder, 'busy.dump')), meanwhile)
})
