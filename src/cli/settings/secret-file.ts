/** Reads a secret from a file. systemd, Docker and Kubernetes pass secrets to a service in files. */
import { readFileSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { CliError } from '../terminal/cli-error.ts'
import { printable } from '../terminal/table.ts'

/** Returns the file's text without one newline at its end. `variable` names the variable that holds the path, for messages. */
export function readSecretFile(variable: string, path: string): string {
  // The message does not repeat the value. An operator may have set the variable to the secret itself, and the message may reach a log.
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
      `${variable}: the file ${printable(path)} cannot be read (${code}). ${remedies[code] ?? 'Check this file.'}`,
    )
  }
}

const remedies: Record<string, string> = {
  ENOENT: 'Create it, or correct the path.',
  EACCES: 'Give this user permission to read it.',
  EISDIR: 'It is a folder. Name a file.',
}
