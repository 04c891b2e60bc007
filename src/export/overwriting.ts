/**
 * Decides whether a file may be overwritten. A database never is. Any other existing file needs --force, unless an
 * earlier run wrote it.
 */
import { open, realpath, stat } from 'node:fs/promises'

export interface Overwriting {
  /** Path of the store's SQLite file. Null when the store is on a PostgreSQL server. */
  storeFile: string | null
  force: boolean
  /** Whether a file that begins with this text was written by an earlier run, which this run continues. */
  isOwn?: ((beginning: string) => boolean) | undefined
}

/** Returns why the path must not be written, for example "it is an SQLite database". Null when it may be written. */
export async function findObstacle(
  given: string,
  { storeFile, force, isOwn }: Overwriting,
): Promise<string | null> {
  const path = await realpath(given).catch(() => given)
  if (storeFile !== null && (await isSameFile(path, storeFile)))
    return 'it is the store, which holds the invoices. Give another name'
  const database = databaseBeside(path)
  if (database !== null && (await isDatabase(database, storeFile)))
    return `SQLite keeps data of the database ${database} under this name. Give another name`
  const beginning = await readBeginning(path)
  if (beginning === null) return null
  if (isSqlite(beginning)) return 'it is an SQLite database. Give another name'
  if (force || isOwn?.(beginning)) return null
  return 'it already exists. Give another name, or add --force to replace it'
}

/** The database that a file named `…-wal`, `…-shm` or `…-journal` belongs to. Null for other names. */
function databaseBeside(path: string): string | null {
  return /^(.+)-(?:wal|shm|journal)$/s.exec(path)?.[1] ?? null
}

async function isDatabase(path: string, storeFile: string | null): Promise<boolean> {
  if (storeFile !== null && (await isSameFile(path, storeFile))) return true
  return isSqlite((await readBeginning(path)) ?? '')
}

async function isSameFile(one: string, other: string): Promise<boolean> {
  const [first, second] = await Promise.all([one, other].map(path => stat(path).catch(() => null)))
  return first != null && second != null && first.dev === second.dev && first.ino === second.ino
}

const isSqlite = (beginning: string) => beginning.startsWith('SQLite format 3\0')

/** Enough bytes for the header line of an export's index. */
const beginningBytes = 1_024

/** Null when the path is no regular file: nothing, a folder, a pipe or a device. */
async function readBeginning(path: string): Promise<string | null> {
  const found = await stat(path).catch(() => null)
  if (found === null || !found.isFile()) return null
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(beginningBytes), 0, beginningBytes, 0)
    return buffer.toString('utf8', 0, bytesRead)
  } finally {
    await file.close()
  }
}
