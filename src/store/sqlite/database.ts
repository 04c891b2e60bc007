/** SQLite handles: how they are opened, and what their failures mean to people. */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { StoreError } from '../store.ts'

/** Marks a file as ours: "FATU". */
export const applicationId = 0x46415455

/** How long a writer waits for another writer, such as a running import, before it gives up. */
const writerPatience = 30_000

export function openReadOnly(path: string): DatabaseSync {
  if (!existsSync(path))
    throw new StoreError(`There is no database at ${path}. Create it with: fatura migrate`)
  return translate(path, () => {
    const db = new DatabaseSync(path, { readOnly: true, timeout: 1_000 })
    db.exec('PRAGMA query_only = ON')
    return db
  })
}

/** Opens for writing. Every commit is on the disk before it returns: WAL with synchronous=FULL. */
export function openReadWrite(path: string, { create }: { create: boolean }): DatabaseSync {
  if (create) translate(path, () => mkdirSync(dirname(path), { recursive: true }))
  else if (!existsSync(path))
    throw new StoreError(`There is no database at ${path}. Create it with: fatura migrate`)
  return translate(path, () => {
    const db = new DatabaseSync(path, { timeout: writerPatience })
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -32768')
    return db
  })
}

/** Runs `work`, and turns what SQLite or the file system says of `path` into a line for people. */
export function translate<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof StoreError) throw error
    throw new StoreError(explain(path, error as NodeJS.ErrnoException & { errcode?: number }), {
      cause: error,
    })
  }
}

function explain(path: string, error: NodeJS.ErrnoException & { errcode?: number }): string {
  // The low byte is the primary result code: https://sqlite.org/rescode.html
  switch (error.errcode === undefined ? undefined : error.errcode & 0xff) {
    case 5:
    case 6:
      return `The database ${path} is locked by another writer. Wait for it to finish, then try again.`
    case 8:
      return `The database ${path} is read-only here. Check who owns the file and its folder.`
    case 13:
      return `The disk that holds ${path} is full. Free some space, then try again; nothing was written.`
    case 14:
      return `Cannot open the database ${path}. Check that its folder exists and can be written to.`
    case 26:
      return `${path} is not a SQLite database. Point DATABASE_URL at another file.`
  }
  if (error.syscall !== undefined)
    return `Cannot create the folder of ${path} (${error.code}). Check its permissions, or point DATABASE_URL elsewhere.`
  return `The database ${path} failed: ${error.message}`
}
