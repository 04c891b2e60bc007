/** A secret that stands in a file, as systemd, Docker and Kubernetes hand it to a service. */
import { readFileSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { CliError } from '../terminal/cli-error.ts'
import { printable } from '../terminal/table.ts'

/** The file's text without one newline at its end. `variable` is the name of what holds the path, for messages. */
export function readSecretFile(variable: string, path: string): string {
  // Not repeated: whoever sets this to the secret itself must not find it in a log.
  if (!isAbsolute(path)) throw new CliError(`${variable} must be the path of a file, which begins with /.`)
  const text = readText(variable, path).replace(/\r?\n$/, '')
  if (text.trim() !== '') return text
  throw new CliError(`${variable}: the file ${printable(path)} is empty. Write the value into it.`)
}

function readText(variable: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    throw new CliError(
      `${variable}: the file ${printable(path)} cannot be read (${code}). ${remedies[code] ?? 'Look at that file.'}`,
    )
  }
}

const remedies: Record<string, string> = {
  ENOENT: 'Create it, or correct the path.',
  EACCES: 'Let this user read it.',
  EISDIR: 'It is a folder: name a file in it.',
}
