/** Writes a file atomically: under a temporary name, which is renamed at the end. */
import { open, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

export type PartFile = Awaited<ReturnType<typeof openPartFile>>

/** Mode of a new file. Only its owner may read it, because exports hold names, addresses and tax ids. */
const ownerOnly = 0o600

export async function openPartFile(given: string) {
  const found = await stat(given).catch(() => null)
  // A pipe or a device cannot be replaced, so its bytes are written directly.
  if (found !== null && !found.isFile()) {
    const file = await open(given, 'w')
    const close = () => file.close()
    return { write: (bytes: string | Uint8Array) => file.writeFile(bytes), finish: close, discard: close }
  }
  // A symbolic link stays, and its target is replaced.
  const path = found === null ? given : await realpath(given)
  // The process id keeps two processes apart that write the same file.
  const part = join(dirname(path), `.${basename(path).slice(0, 200)}.${process.pid}.part`)
  const file = await open(part, 'w', found === null ? ownerOnly : found.mode & 0o777)
  return {
    write: (bytes: string | Uint8Array) => file.writeFile(bytes),
    /** Syncs the file to the disk and gives it its final name. Replaces an existing file of that name. */
    async finish() {
      await file.sync()
      await file.close()
      await rename(part, path)
    },
    /** Removes the temporary file. Does nothing after `finish`. */
    async discard() {
      await file.close()
      await rm(part, { force: true })
    },
  }
}
