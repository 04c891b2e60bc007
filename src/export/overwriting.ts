/** What may be written over. A database never is, nor a file that is there already, unless the user says so. */
import { open, realpath, stat } from 'node:fs/promises'

export interface Overwriting {
  /** The store's own file; null for a server. */
  storeFile: string | null
  /** Whether the user asked for a file that exists to be replaced. */
  force: boolean
  /** Whether a file that begins so was written by an earlier run, which this one continues. */
  isOwn?: ((beginning: string) => boolean) | undefined
}

/** Why nothing may be written to the path, as in "it is a database"; null when it may. */
export async function findObstacle(
  given: string,
  { storeFile, force, isOwn }: Overwriting,
): Promise<string | null> {
  const path = await realpath(given).catch(() => given)
  if (storeFile !== null && (await isSameFile(path, storeFile)))
    return 'it is the store, which holds the invoices; give another name'
  const database = databaseBeside(path)
  if (database !== null && (await isDatabase(database, storeFile)))
    return `SQLite keeps data of the database ${database} under this name; give another one`
  const beginning = await readBeginning(path)
  if (beginning === null) return null
  if (isSqlite(beginning)) return 'it is an SQLite database; give another name'
  if (force || isOwn?.(beginning)) return null
  return 'it exists already; give another name, or add --force to replace it'
}

/** The database whose log, index of the log or journal has this name; null for other names. */
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

/** More than the first line of an index. */
const beginningBytes = 1_024

/** Null where no file is: nothing, a folder, a pipe or a device. */
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
