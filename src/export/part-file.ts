/** Writes a file atomically: under a temporary name, renamed at the end. */
import { type FileHandle, open, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Write } from './columns.ts'

export interface PartFile {
  write: Write
  /** Syncs it to the disk, and replaces any file of its name. */
  finish(): Promise<void>
  /** Removes the temporary file. After `finish`, it does nothing. */
  discard(): Promise<void>
}

/** With the process id, for two processes that write the same file. */
function partName(path: string): string {
  return join(dirname(path), `.${basename(path).slice(0, 200)}.${process.pid}.part`)
}

/** A new file is for its owner alone: it holds names, addresses and tax ids. */
const ownerOnly = 0o600

export async function openPartFile(given: string): Promise<PartFile> {
  const found = await stat(given).catch(() => null)
  // A pipe or device is written directly.
  if (found !== null && !found.isFile()) return writeThrough(await open(given, 'w'))
  // A link stays, and its target is replaced.
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
