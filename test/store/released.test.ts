/** What released versions made and named: their stores are migrated and answer every request as they did then, and no name is gone. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { listPublicNames } from '../../scripts/public-names.ts'
import { defaultPageSize, maxPageSize } from '../../src/domain/list-query.ts'
import { migrateStore } from '../../src/store/engines.ts'
import type { Schema } from '../../src/store/migrations.ts'
import { schema as postgres } from '../../src/store/postgres/schema.ts'
import { schema as sqlite } from '../../src/store/sqlite/migrations.ts'
import { createDatabase, createFolder, runSql } from '../support/databases/engines.ts'
import { startService } from '../support/worlds/service.ts'

const folder = join(import.meta.dirname, 'released')
const unpack = (version: string, name: string) => gunzipSync(readFileSync(join(folder, version, name)))

const restore = {
  async sqlite(t: TestContext, version: string) {
    const path = join(await createFolder(t), 'fatura.db')
    await writeFile(path, unpack(version, 'sqlite.db.gz'))
    return `sqlite:${path}`
  },
  async postgres(t: TestContext, version: string) {
    const url = await createDatabase(t)
    await runSql(url, unpack(version, 'postgres.sql.gz').toString())
    return url
  },
}

/** Only the members that were there then: a later version may add others. */
function project(answer: unknown, then: unknown): unknown {
  if (Array.isArray(answer) && Array.isArray(then))
    return answer.map((item, index) => project(item, then[Math.min(index, then.length - 1)]))
  if (typeof answer !== 'object' || typeof then !== 'object' || answer === null || then === null)
    return answer
  return Object.fromEntries(
    Object.entries(answer)
      .filter(([name]) => name in then)
      .map(([name, value]) => [name, project(value, then[name as never])]),
  )
}

test('the text of a released migration never changes', () => {
  const hashes = {
    sqlite: ['c7cff528dc66fb5b06690e0da005e9258c872b351cdd03e67d6d4b83dbe63d99'],
    postgres: ['9f173fe60bfe152c651520ca0139f60f9d5abebb9d0a4a299d3dd7903ba7bc00'],
  }
  const found = (released: string[], { migrations }: Schema) =>
    migrations.slice(0, released.length).map(({ sha256 }) => sha256)
  assert.deepEqual(found(hashes.sqlite, sqlite), hashes.sqlite)
  assert.deepEqual(found(hashes.postgres, postgres), hashes.postgres)
})

for (const version of readdirSync(folder))
  describe(`a released store of version ${version}`, () => {
    it('has only public names that still exist', async () => {
      const names = new Set(await listPublicNames())
      const released = unpack(version, 'names.txt.gz').toString().split('\n')
      assert.ok(released.length > 1_000)
      assert.deepEqual(
        released.filter(name => !names.has(name)),
        [],
      )
    })

    for (const [name, createStore] of Object.entries(restore)) {
      const engine = {
        name,
        async createStore(t: TestContext) {
          const url = await createStore(t, version)
          await migrateStore(url)
          return url
        },
      }
      const { token, answers } = JSON.parse(unpack(version, `${name}.json.gz`).toString())

      it(`answers as before after its migration, on ${name}`, async t => {
        const service = await startService(t, engine)
        for (const [path, then] of Object.entries<{ status: number; body: unknown }>(answers)) {
          const answer = await service.get(`/api/v1/client/${path}`, { token })
          assert.equal(answer.status, then.status, path)
          assert.deepEqual(project(answer.json, then.body), then.body, path)
        }
      })

      it(`lists the newest invoices first for any page size, on ${name}`, async t => {
        const service = await startService(t, engine)
        for (const path of Object.keys(answers).filter(path => path.endsWith('/invoices'))) {
          const list = async (query: string) =>
            (await service.get(`/api/v1/client/${path}${query}`, { token })).json
          const { invoices: newest } = await list(`?page_size=${maxPageSize}`)
          assert.equal(newest.length, maxPageSize, path)
          for (let size = 1; size <= maxPageSize; size++)
            assert.deepEqual((await list(`?page_size=${size}`)).invoices, newest.slice(0, size), `${size}`)
          assert.deepEqual((await list('')).invoices, newest.slice(0, defaultPageSize), 'the default')
        }
      })
    }
  })
