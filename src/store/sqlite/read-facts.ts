import { accessSync, constants, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { StoreFacts } from '../facts.ts'
import { explainState } from '../migrations.ts'
import { openReadOnly, readLogBytes } from './database.ts'
import { translate } from './failures.ts'
import { readState, schema } from './migrations.ts'

export function readSqliteFacts(path: string): StoreFacts {
  using db = openReadOnly(path)
  return translate(path, () => {
    const full = resolve(path)
    const { mode } = statSync(full)
    // Other users can reach a file only when they may enter all of its folders.
    const isReached = foldersOf(full).every(folder => (statSync(folder).mode & 0o001) !== 0)
    const state = readState(db)
    const pragma = (name: string) => db.prepare(`PRAGMA ${name}`).get()?.[name]
    return {
      engine: `SQLite ${db.prepare('SELECT sqlite_version() AS version').get()?.version}`,
      schema: state.hashes.length,
      needed: schema.migrations.length,
      schemaProblem: explainState(`The database ${path}`, state, schema),
      isReadOnly: pragma('query_only') === 1,
      server: null,
      file: {
        journalMode: String(pragma('journal_mode')),
        logBytes: readLogBytes(path),
        path,
        isWritable: [full, dirname(full)].every(mayWrite),
        isPublic: isReached && (mode & 0o004) !== 0,
        isOpenToAll: isReached && (mode & 0o002) !== 0,
      },
    }
  })
}

/** Maximum number of reported damages. A few are enough, because nobody repairs them one by one. */
const maxDamages = 3

/** Checks every page of the database. A deep check also compares each index with its table. */
export function findDamage(path: string, isDeep: boolean): string[] {
  using db = openReadOnly(path)
  const check = isDeep ? 'integrity_check' : 'quick_check'
  const found = translate(path, () => db.prepare(`PRAGMA ${check}(${maxDamages})`).all())
  return found.map(row => String(row[check])).filter(line => line !== 'ok')
}

function foldersOf(path: string): string[] {
  const folder = dirname(path)
  return folder === path ? [] : [folder, ...foldersOf(folder)]
}

function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}
