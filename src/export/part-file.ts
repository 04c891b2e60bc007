/** Writes a file atomically: under a temporary name, renamed at the end. */
import { open, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

export type PartFile = Awaited<ReturnType<typeof openPartFile>>

/** A new file is for its owner alone: it holds names, addresses and tax ids. */
const ownerOnly = 0o600

export async function openPartFile(given: string) {
  const found = await stat(given).catch(() => null)
  // A pipe or device is written directly.
  if (found !== null && !found.isFile()) {
    const file = await open(given, 'w')
    const close = () => file.close()
    return { write: (bytes: string | Uint8Array) => file.writeFile(bytes), finish: close, discard: close }
  }
  // A link stays, and its target is replaced.
  const path = found === null ? given : await realpath(given)
  // With the process id, for two processes that write the same file.
  const part = join(dirname(path), `.${basename(path).slice(0, 200)}.${process.pid}.part`)
  const file = await open(part, 'w', found === null ? ownerOnly : found.mode & 0o777)
  return {
    write: (bytes: string | Uint8Array) => file.writeFile(bytes),
    /** Syncs it to the disk, and replaces any file of its name. */
    async finish() {
      await file.sync()
      await file.close()
      await rename(part, path)
    },
    /** Removes the temporary file. After `finish`, it does nothing. */
    async discard() {
      await file.close()
      await rm(part, { force: true })
    },
  }
}
