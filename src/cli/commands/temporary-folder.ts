import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CliError } from '../terminal/cli-error.ts'

export async function createTemporaryFolder(prefix: string): Promise<string> {
  return mkdtemp(join(tmpdir(), prefix)).catch((error: NodeJS.ErrnoException) => {
    throw new CliError(
      `Cannot create a folder in ${tmpdir()} (${error.code}). Set TMPDIR to a folder that you can write to.`,
    )
  })
}
