/** SQLite handles: how they are opened, and whether what they have open is still the store. */

import { randomUUID } from 'node:crypto'
import { closeSync, existsSync, linkSync, mkdirSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type DatabaseSyncOptions } from 'node:sqlite'
import { type LockWait, StoreDamaged, StoreError, StoreReplaced, StoreUnavailable } from '../store.ts'
import { translate } from './failures.ts'
import { readPatienceMs, waitForLock } from './wait-for-lock.ts'

/** Marks a file as ours: "FATU". */
export const applicationId = 0x46415455

/** How often a handle that only reads looks whether its file is still in its place. */
const lookEveryMs = 250

/** An open file goes on being read and written when its name is another's, or nobody's: who has it open must look. */
export class StoreFile extends DatabaseSync {
  readonly path: string
  /** Asked for before the file is opened: one that is replaced in between counts as replaced. */
  private readonly file: string | null
  /** The log beside it, which stays the same for as long as this handle is open; null until it was seen. */
  private log: string | null = null
  private lookedAt = performance.now()

  constructor(path: string, options: DatabaseSyncOptions) {
    const found = look(path)
    if (found?.size === 0) throw lostContent(path)
    super(path, options)
    this.path = path
    this.file = found?.id ?? null
  }

  /** Looks now and then; throws as `checkPlace` does. */
  look(): void {
    const now = performance.now()
    if (now - this.lookedAt < lookEveryMs) return
    this.checkPlace()
    this.lookedAt = now
  }

  /** Throws when this handle's file is not the store any more; a `StoreReplaced` when another one is there to be opened. */
  checkPlace(): void {
    const { path, file } = this
    const [found, log] = [look(path), look(logOf(path))]
    if (found === null) throw new StoreUnavailable(`The database ${path} is gone.`)
    if (found.size === 0) throw lostContent(path)
    if (found.id === file && (this.log === null || this.log === log?.id)) {
      this.log = log?.id ?? null
      return
    }
    // SQLite would take what is in it for changes of the new file.
    if (found.id !== file && log?.id === this.log && (log?.size ?? 0) > 0)
      throw new StoreUnavailable(
        `The database ${path} was replaced, and the log of the one before lies beside it. Remove ${path}-wal and ${path}-shm.`,
      )
    throw new StoreReplaced(path)
  }

  /** Commits what `work` does, or nothing. Once it has begun, no statement of it, nor its end, waits for a lock. */
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
      // SQLite has rolled back by itself after some failures, a full disk among them.
      if (this.isTransaction) this.exec('ROLLBACK')
    }
  }
}

/** Null when there is no such file. It is never opened here: to close it would end SQLite's own locks on it. */
function look(path: string): { id: string; size: number } | null {
  const found = stat(path)
  return found === undefined ? null : { id: `${found.dev}:${found.ino}`, size: Number(found.size) }
}

/** Whether a file exists is not known to a user who may not enter its folder. */
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
  return look(logOf(path))?.size ?? 0
}

/** A new store is never empty under its name: what is was one. */
function lostContent(path: string): StoreDamaged {
  return new StoreDamaged(
    `The database ${path} has lost its content: it has no tables. If it never had any, remove the file`,
  )
}

export function openReadOnly(path: string): StoreFile {
  if (look(path) === null)
    throw new StoreError(`There is no database at ${path}. Create it with: fatura migrate`)
  return translate(path, () => {
    const db = openOwn(path, { readOnly: true, timeout: readPatienceMs })
    // A search of a large customer reads some megabytes; they stay in memory for the next one.
    db.exec('PRAGMA query_only = ON; PRAGMA cache_size = -32768')
    return db
  })
}

/** 64 MB in pages of 4 kB: a backfill writes pages again and again, and each is copied to its place once. */
const checkpointPages = 16_000
/** Holds what a batch of a backfill changes: pages that find no room are written before the commit, and then again. */
const writeCacheKb = 65_536

/** Opens for writing. Every commit is on the disk before it returns: WAL with synchronous=FULL. */
export async function openReadWrite(path: string, { create, ...wait }: { create: boolean } & LockWait) {
  if (create) translate(path, () => createFile(path))
  else if (look(path) === null)
    throw new StoreError(`There is no database at ${path}. Create it with: fatura migrate`)
  // Fails at once where another process keeps the file locked, as to change it to WAL does.
  return waitForLock(path, wait, () =>
    closeUnless(openOwn(path, { timeout: 0 }), db =>
      db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -${writeCacheKb};
        PRAGMA wal_autocheckpoint = ${checkpointPages}; PRAGMA journal_size_limit = ${checkpointPages * 4096}; PRAGMA busy_timeout = ${readPatienceMs}`),
    ),
  )
}

/** Closes the file when what is done with it fails. */
export function closeUnless(db: StoreFile, work: (db: StoreFile) => void): StoreFile {
  try {
    work(db)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** Opens a file that is empty or ours; another program's is left exactly as it is. */
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

/** Names, addresses and tax ids lie in it: it is for its owner alone. SQLite makes the files beside it alike. */
function createFile(path: string): void {
  if (look(path) !== null) return
  createFolder(dirname(path))
  const draft = `${path}.new-${randomUUID()}`
  closeSync(openSync(draft, 'wx', 0o600))
  try {
    const db = new DatabaseSync(draft)
    db.exec(`PRAGMA application_id = ${applicationId}`)
    db.close()
    linkSync(draft, path)
  } catch (error) {
    // Another process made one meanwhile; or the file system has no links.
    const { code, syscall } = error as NodeJS.ErrnoException
    if (syscall !== 'link') throw error
    if (code !== 'EEXIST') renameSync(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Level by level: where a file system takes no folders, the recursive way never ends. */
function createFolder(path: string): void {
  if (existsSync(path)) return
  createFolder(dirname(path))
  try {
    mkdirSync(path, 0o700)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}
