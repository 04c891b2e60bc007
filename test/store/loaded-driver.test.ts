import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

const engines = new URL('../../src/store/engines.ts', import.meta.url)

/** Opens a store in every way, and prints the loaded modules of PostgreSQL's driver. */
const program = `
  const { migrateStore, openOperatorStore, openReadStore, openWriteStore } = await import(${JSON.stringify(engines)})
  const url = 'sqlite:' + process.argv[1]
  await migrateStore(url)
  for (const open of [openReadStore, openOperatorStore, openWriteStore]) await (await open(url)).close()
  const { default: module } = await import('node:module')
  console.log(Object.keys(module._cache).filter(path => path.includes('/node_modules/pg')).length)`

test('a process on SQLite loads nothing of PostgreSQL’s driver', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'fatura-driver-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const given = ['--input-type=module', '-e', program, join(folder, 'fatura.db')]
  const { stdout } = await promisify(execFile)(process.execPath, given)
  assert.equal(stdout.trim(), '0')
})
