/** Opens SQLite files, and checks whether an open file is still the store. */

import { randomUUID } from 'node:crypto'
import { closeSync, existsSync, linkSync, mkdirSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type DatabaseSyncOptions } from 'node:sqlite'
import { type LockWait, StoreDamaged, StoreError, StoreReplaced, StoreUnavailable } from '../store.ts'
import { translate } from './failures.ts'
import { readPatienceMs, waitForLock } from './wait-for-lock.ts'

/** SQLite's application ID of Fatura's files. The bytes spell "FATU". */
export const applicationId = 0x46415455

/** Minimum time in milliseconds between two checks whether a reader's file is still at its path. */
const checkEveryMs = 250

/**
 * An open SQLite file. The process can read and write it even after another file took its name or it was deleted. Its users must therefore
 * check whether the file is still at its path.
 */
export class StoreFile extends DatabaseSync {
  readonly path: string
  /** Identity of the database file, read before the file is opened. A file that is replaced in between counts as replaced. */
  private readonly file: string | null
  /** Identity of the write-ahead log, which does not change while this handle is open. Null until the log was seen. */
  private log: string | null = null
  private checkedAt = performance.now()

  constructor(path: string, options: DatabaseSyncOptions) {
    const found = identify(path)
    if (found?.size === 0) throw lostContent(path)
    super(path, options)
    this.path = path
    this.file = found?.id ?? null
  }

  /** Calls `checkFile`, but not more often than every `checkEveryMs`. */
  checkNowAndThen(): void {
    const now = performance.now()
    if (now - this.checkedAt < checkEveryMs) return
    this.checkFile()
    this.checkedAt = now
  }

  /** Throws when the open file is no longer the store. Throws `StoreReplaced` when another file can be opened in its place. */
  checkFile(): void {
    const { path, file } = this
    const [found, log] = [identify(path), identify(logOf(path))]
    if (found === null) throw new StoreUnavailable(`The database ${path} is gone.`)
    if (found.size === 0) throw lostContent(path)
    if (found.id === file && (this.log === null || this.log === log?.id)) {
      this.log = log?.id ?? null
      return
    }
    // SQLite would take the old file's log for changes of the new file.
    if (found.id !== file && log?.id === this.log && (log?.size ?? 0) > 0)
      throw new StoreUnavailable(
        `The database ${path} was replaced, but log files of the old database are still beside it. Remove ${path}-wal and ${path}-shm.`,
      )
    throw new StoreReplaced(path)
  }

  /** Runs `work` in a transaction. Only its first statement waits for a lock. Later statements and the commit never wait. */
  async transact<T>(wait: LockWait, work: () => Promise<T>): Promise<T> {
    await waitForLock(this.path, wait, () => {
      this.exec('PRAGMA busy_timeout = 0')
      try {
        this.exec('BEGIN IMMEDIATE')
      } finally {
        this.exec(`PRAGMA busy_timeout = ${readPatienceMs}`)
      }
    })
    try {
      const result = await work()
      translate(this.path, () => this.exec('COMMIT'))
      return result
    } finally {
      // SQLite has already rolled back by itself after some failures, for example when the disk is full.
      if (this.isTransaction) this.exec('ROLLBACK')
    }
  }
}

/**
 * Returns the identity and size of a file. Null when there is no such file. The file is never opened here, because closing it would release
 * SQLite's own locks on it.
 */
function identify(path: string): { id: string; size: number } | null {
  const found = stat(path)
  return found === undefined ? null : { id: `${found.dev}:${found.ino}`, size: Number(found.size) }
}

/** Reads a file's status. A user who cannot enter the folder cannot know whether the file exists. */
function stat(path: string) {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error
    throw new StoreUnavailable(
      `Cannot reach the database ${path}: this user may not enter its folder. Let it enter, read and write the folder.`,
      { cause: error },
    )
  }
}

function logOf(path: string): string {
  return `${path}-wal`
}

export function readLogBytes(path: string): number {
  return identify(logOf(path))?.size ?? 0
}

/** Error for an empty file. A new store gets its name only after it has content, so an empty file has lost its content. */
function lostContent(path: string): StoreDamaged {
  return new StoreDamaged(
    `The database ${path} has lost its content: it has no tables. If it never had any, remove the file`,
  )
}

export function openReadOnly(path: string): StoreFile {
  if (identify(path) === null)
    throw new StoreError(`There is no database at ${path}. Create it with: fatura migrate`)
  return translate(path, () => {
    const db = openOwn(path, { readOnly: true, timeout: readPatienceMs })
    // A search of a large customer reads some megabytes. This cache keeps them in memory for the next search.
    db.exec('PRAGMA query_only = ON; PRAGMA cache_size = -32768')
    return db
  })
}

/**
 * Size at which SQLite copies its log into the database file: 64 MB in pages of 4 kB. A backfill writes the same pages many times. With a
 * large log, each page is copied only once.
 */
const checkpointPages = 16_000
/**
 * Size of the page cache, enough for the pages that one batch of a backfill changes. Pages that do not fit are written before the commit,
 * and then once more.
 */
const writeCacheKb = 65_536

/** Opens a file for reading and writing. Every commit is on the disk before it returns, because of WAL with synchronous=FULL. */
export async function openReadWrite(path: string, { create, ...wait }: { create: boolean } & LockWait) {
  if (create) translate(path, () => createFile(path))
  else if (identify(path) === null)
    throw new StoreError(`There is no database at ${path}. Create it with: fatura migrate`)
  // A timeout of 0 fails at once while another process locks the file, for example to change it to WAL. `waitForLock` then tries again.
  return waitForLock(path, wait, () =>
    closeUnless(openOwn(path, { timeout: 0 }), db =>
      db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -${writeCacheKb};
        PRAGMA wal_autocheckpoint = ${checkpointPages}; PRAGMA journal_size_limit = ${checkpointPages * 4096}; PRAGMA busy_timeout = ${readPatienceMs}`),
    ),
  )
}

export function closeUnless(db: StoreFile, work: (db: StoreFile) => void): StoreFile {
  try {
    work(db)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** Opens a file that is empty or belongs to Fatura. The file of another program is not changed. */
function openOwn(path: string, options: DatabaseSyncOptions): StoreFile {
  return closeUnless(new StoreFile(path, options), db => {
    const { owner, version, tables } = db
      .prepare(
        `SELECT application_id AS owner, user_version AS version, (SELECT count(*) FROM sqlite_schema) AS tables
         FROM pragma_application_id, pragma_user_version`,
      )
      .get() as { owner: number; version: number; tables: number }
    if (owner === applicationId && version > 0 && tables === 0) throw lostContent(path)
    if (owner !== applicationId && tables > 0)
      throw new StoreError(`${path} belongs to another program. Point DATABASE_URL at another file.`)
  })
}

/**
 * Creates a file that only its owner can read, because it contains names, addresses and tax IDs. SQLite gives the files beside it the same
 * rights.
 */
function createFile(path: string): void {
  if (identify(path) !== null) return
  createFolder(dirname(path))
  const draft = `${path}.new-${randomUUID()}`
  closeSync(openSync(draft, 'wx', 0o600))
  try {
    const db = new DatabaseSync(draft)
    db.exec(`PRAGMA application_id = ${applicationId}`)
    db.close()
    linkSync(draft, path)
  } catch (error) {
    // `link` fails when another process has created the file meanwhile. It also fails on a file system without hard links.
    const { code, syscall } = error as NodeJS.ErrnoException
    if (syscall !== 'link') throw error
    if (code !== 'EEXIST') renameSync(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Creates one folder after another. On a file system that takes no folders, Node's recursive mkdir never ends. */
function createFolder(path: string): void {
  if (existsSync(path)) return
  createFolder(dirname(path))
  try {
    mkdirSync(path, 0o700)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}
