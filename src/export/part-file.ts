/** A file that is there whole, or not at all: it is written under another name, and gets its own at the end. */
import { type FileHandle, open, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Write } from './columns.ts'

export interface PartFile {
  write: Write
  /** On the disk, and in the place of whatever had the name before. */
  finish(): Promise<void>
  /** Leaves nothing behind. After `finish`, it does nothing. */
  discard(): Promise<void>
}

/** What is on its way. The process's number keeps two apart that write to the same file. */
function partName(path: string): string {
  return join(dirname(path), `.${basename(path).slice(0, 200)}.${process.pid}.part`)
}

/** Names, addresses and tax ids lie in it: a new file is for its owner alone. */
const ownerOnly = 0o600

export async function openPartFile(given: string): Promise<PartFile> {
  const found = await stat(given).catch(() => null)
  // What is no file, such as a pipe, has no name to give: it is written as it is.
  if (found !== null && !found.isFile()) return writeThrough(await open(given, 'w'))
  // A link stays one, and what it leads to is replaced.
  const path = found === null ? given : await realpath(given)
  const part = partName(path)
  const file = await open(part, 'w', found === null ? ownerOnly : found.mode & 0o777)
  let isOpen = true
  async function close(): Promise<void> {
    if (isOpen) await file.close()
    isOpen = false
  }
  return {
    write: bytes => writeAll(file, bytes),
    async finish() {
      await file.sync()
      await close()
      await rename(part, path)
    },
    async discard() {
      await close()
      await rm(part, { force: true })
    },
  }
}

function writeThrough(file: FileHandle): PartFile {
  return {
    write: bytes => writeAll(file, bytes),
    finish: () => file.close(),
    discard: () => file.close().catch(() => {}),
  }
}

async function writeAll(file: FileHandle, bytes: string | Uint8Array): Promise<void> {
  await file.writeFile(bytes)
}
