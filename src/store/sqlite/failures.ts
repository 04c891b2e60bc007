/** Explains failures of SQLite and of its file to people. */
import { accessSync, constants, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { changedBelow } from '../migrations.ts'
import { StoreDamaged, StoreError, StoreUnavailable } from '../store.ts'

export function translate<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof StoreError) throw error
    if (isOverflow(error)) throw new StoreError(tooMuch, { cause: error })
    if (isDamage(error)) throw new StoreDamaged(`The database ${path} is damaged`, { cause: error })
    throw new StoreError(explain(path, error as SqliteError), { cause: error })
  }
}

// SQLite's result codes for failures that may pass: busy, locked, out of memory, I/O error, full, cannot open. See
// https://sqlite.org/rescode.html
const passing = new Set([5, 6, 7, 10, 13, 14])

export function attemptRead<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (passing.has(primaryCode(error as SqliteError) ?? 0))
      throw new StoreUnavailable((error as Error).message, { cause: error })
    if (isDamage(error))
      throw new StoreDamaged(`${(error as Error).message}: the database is damaged`, { cause: error })
    if (/^no such (table|column)/.test((error as Error).message))
      throw new StoreUnavailable(`${(error as Error).message}: ${changedBelow}`, { cause: error })
    if (isOverflow(error)) throw new StoreError(tooMuch, { cause: error })
    throw error
  }
}

const tooMuch =
  "A customer's amounts add up to more than SQLite counts, 2^63. Correct them, or keep the records in PostgreSQL."

/** True when a value exceeds 64 bits. Only three values can: a sum of rows, a counter, and the difference that is added to a counter. */
function isOverflow(error: unknown): boolean {
  return /^integer overflow|INTEGER column counters\.total_cents$|^BigInt value is too large/.test(
    (error as Error).message,
  )
}

type SqliteError = NodeJS.ErrnoException & { errcode?: number }

function primaryCode({ errcode }: SqliteError): number | undefined {
  return errcode === undefined ? undefined : errcode & 0xff
}

function isDamage(error: unknown): boolean {
  return primaryCode(error as SqliteError) === 11
}

/** True when another process holds a lock. The lock may be free a moment later. */
export function isBusy(error: unknown): boolean {
  return primaryCode(error as SqliteError) === 5
}

/** Finds the reason why a file cannot be opened. SQLite reports only that it cannot. */
function whyNotOpened(path: string): string {
  const folder = dirname(path)
  const remedy = `Let ${whoThisIs()} read and write the file and its folder`
  if (!mayUse(folder, constants.F_OK)) return 'its folder does not exist. Create it, or correct DATABASE_URL'
  if (mayUse(path, constants.F_OK) && !mayUse(path, constants.R_OK))
    return `this user may not read it. ${remedy}`
  if (!mayUse(folder, constants.W_OK))
    return `this user may not write into its folder, where SQLite keeps files beside it. ${remedy}`
  return 'the file system refused it. Check the disk, and the rights of the file and its folder'
}

function isFolder(path: string): boolean {
  return mayUse(path, constants.F_OK) && statSync(path).isDirectory()
}

function mayUse(path: string, mode: number): boolean {
  try {
    accessSync(path, mode)
    return true
  } catch {
    return false
  }
}

function whoThisIs(): string {
  const uid = process.getuid?.()
  return uid === undefined ? 'this user' : `the user with uid ${uid}`
}

function explain(path: string, error: SqliteError): string {
  if (isFolder(path)) return `The database ${path} is a folder. Point DATABASE_URL at a file.`
  switch (error.syscall === 'open' ? 14 : primaryCode(error)) {
    case 5:
    case 6:
      return `The database ${path} is locked by another writer. Wait for it to finish, then try again.`
    case 8:
      return `The database ${path} is read-only here. Check who owns the file and its folder.`
    case 13:
      return `The disk that holds ${path} is full. Free some space, then try again; nothing was written.`
    case 14:
      return `Cannot open the database ${path}: ${whyNotOpened(path)}.`
    case 26:
      return `${path} is not a SQLite database. Set DATABASE_URL to another file. If this file was the store, restore a backup.`
  }
  if (error.syscall !== undefined)
    return `Cannot create the folder of ${path} (${error.code}). Check its permissions, or point DATABASE_URL elsewhere.`
  return `The database ${path} failed: ${error.message}`
}
