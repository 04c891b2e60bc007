/** Folders that tests write to, and that have no room: a test that fails for that reason says something else. */
import { statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

/** Less than the server and the stores of a run take. */
const neededBytes = 300 * 1024 * 1024

/** A line for each full folder; none where a folder is missing. */
export function describeFullDisks(
  folders: readonly string[] = [tmpdir(), '/dev/shm', process.cwd()],
  statfs: (folder: string) => { bavail: number; bsize: number } = statfsSync,
): string[] {
  return folders.flatMap(folder => {
    const free = freeBytes(folder, statfs)
    if (free === null || free >= neededBytes) return []
    const left = Math.floor(free / 1024 / 1024)
    return `The disk of ${folder} is full: ${left} MB are left, and the tests need ${neededBytes / 1024 / 1024}. Free some space, or set TMPDIR to another folder; then run the tests again.`
  })
}

function freeBytes(folder: string, statfs: (folder: string) => { bavail: number; bsize: number }) {
  try {
    const { bavail, bsize } = statfs(folder)
    return bavail * bsize
  } catch {
    return null
  }
}
