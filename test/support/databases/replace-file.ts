/** The file of a SQLite store, backed up and replaced. */
import { copyFile, rename, rm } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'

/** As docs/backup.md makes one. */
export function backUp(path: string, name = 'backup'): string {
  const backup = `${path}.${name}`
  const db = new DatabaseSync(path)
  db.exec(`VACUUM INTO '${backup}'`)
  db.close()
  return backup
}

export async function removeLog(path: string): Promise<void> {
  for (const ending of ['-wal', '-shm']) await rm(`${path}${ending}`, { force: true })
}

/** As docs/backup.md restores one, but under processes that run. */
export async function restore(path: string, backup: string): Promise<void> {
  await removeLog(path)
  await copyFile(backup, `${path}.new`)
  await rename(`${path}.new`, path)
}
