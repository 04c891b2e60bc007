/** SQLite handles: how they are opened, and what their failures mean to people. */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type DatabaseSyncOptions } from 'node:sqlite'
import { StoreError, StoreUnavailable } from '../store.ts'

/** Marks a file as ours: "FATU". */
export const applicationId = 0x46415455

/** How long a writer waits for another writer, such as a running import, before it gives up. */
const writerPatience = 30_000

export function openReadOnly(path: string): DatabaseSync {
  if (!existsSync(path))
    throw new StoreError(`There is no database at ${path}. Create it with: fatura migrate`)
  return translate(path, () => {
    const db = openOwn(path, { readOnly: true, timeout: 1_000 })
    // A search of a large customer reads some megabytes; they stay in memory for the next one.
    db.exec('PRAGMA query_only = ON; PRAGMA cache_size = -32768')
    return db
  })
}

/** Opens for writing. Every commit is on the disk before it returns: WAL with synchronous=FULL. */
export function openReadWrite(
  path: string,
  { create, patience = writerPatience }: { create: boolean; patience?: number },
): DatabaseSync {
  if (create) translate(path, () => createFolder(dirname(path)))
  else if (!existsSync(path))
    throw new StoreError(`There is no database at ${path}. Create it with: fatura migrate`)
  return translate(path, () => {
    const db = openOwn(path, { timeout: patience })
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -32768')
    return db
  })
}

/** Opens a file that is empty or ours; another program's is left exactly as it is. */
function openOwn(path: string, options: DatabaseSyncOptions): DatabaseSync {
  const db = new DatabaseSync(path, options)
  try {
    const { owner, tables } = db
      .prepare(
        'SELECT application_id AS owner, (SELECT count(*) FROM sqlite_schema) AS tables FROM pragma_application_id',
      )
      .get() as { owner: number; tables: number }
    if (owner === applicationId || tables === 0) return db
  } catch (error) {
    db.close()
    throw error
  }
  db.close()
  throw new StoreError(`${path} belongs to another program. Point DATABASE_URL at another file.`)
}

/** Level by level: where a file system takes no folders, the recursive way never ends. */
function createFolder(path: string): void {
  if (existsSync(path)) return
  createFolder(dirname(path))
  try {
    mkdirSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** Runs `work`, and turns what SQLite or the file system says of `path` into a line for people. */
export function translate<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof StoreError) throw error
    throw new StoreError(explain(path, error as SqliteError), {
      cause: error,
    })
  }
}

// Busy, locked, out of memory, I/O error, full, cannot open: what may pass. https://sqlite.org/rescode.html
const passing = new Set([5, 6, 7, 10, 13, 14])

/** Runs a read, and tells a failure that may pass from a fault. */
export function attemptRead<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (passing.has(primaryCode(error as SqliteError) ?? 0))
      throw new StoreUnavailable((error as Error).message, { cause: error })
    throw error
  }
}

type SqliteError = NodeJS.ErrnoException & { errcode?: number }

/** The low byte of a result code. */
function primaryCode({ errcode }: SqliteError): number | undefined {
  return errcode === undefined ? undefined : errcode & 0xff
}

function explain(path: string, error: SqliteError): string {
  switch (primaryCode(error)) {
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
