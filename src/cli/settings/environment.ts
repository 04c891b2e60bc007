/** The only code that reads the environment. A file `.env` in the working directory supplies variables that the environment lacks. */
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { CliError } from '../terminal/cli-error.ts'
import { hideSecrets } from '../terminal/hide-secrets.ts'
import { formatParagraph } from '../terminal/table.ts'
import { findNearest } from './nearest-setting.ts'
import { variableNames } from './settings.ts'

export function readVariable(name: string): string | undefined {
  return process.env[name]
}

/**
 * Loads the file `.env`. A variable of the environment wins over the file, even when its value is empty. No message repeats a value of the
 * file, because the file holds secrets.
 */
export function loadEnvFile(): void {
  const text = readEnvFile() ?? ''
  const wrong = findWrongLine(text)
  if (wrong !== null)
    throw new CliError(
      `Line ${wrong} of the file .env must be NAME=value, a comment that begins with #, or empty. Close every quote, and save the file as UTF-8.`,
    )
  const added = Object.entries(parseEnv(text)).filter(([name]) => process.env[name] === undefined)
  for (const [name, value] of added) process.env[name] = value
  // The warning appears only once. A second call of `loadEnvFile` finds the added names in `process.env`.
  const unknown = added.map(([name]) => name).filter(name => !isKnown(name))
  if (unknown.length > 0)
    process.stderr.write(
      hideSecrets(
        formatParagraph(
          `The file .env has names that are not settings of Fatura. They are ignored: ${unknown.map(describeUnknown).join(', ')}.`,
        ),
      ),
    )
}

/** Suggests the nearest setting even when up to 40 % of the letters differ. Every name in `.env` is meant for this program. */
function describeUnknown(name: string): string {
  const nearest = findNearest(name, 0.4)
  return nearest === null ? name : `${name} (did you mean ${nearest}?)`
}

/**
 * Finds environment variables that differ from a setting in a letter or two. Short names are skipped, because they may belong to another
 * program.
 */
export function findMisspelt(): { name: string; nearest: string }[] {
  return Object.keys(process.env)
    .filter(name => name.length >= 8 && name.includes('_') && !isKnown(name))
    .flatMap(name => {
      const nearest = findNearest(name, 0.15)
      return nearest === null ? [] : [{ name, nearest }]
    })
}

/** Whether the name is a setting, or a variable of Node or of the PostgreSQL driver that is allowed in `.env`. */
function isKnown(name: string): boolean {
  return variableNames.includes(name) || /^(PG[A-Z]+|NO_COLOR|FORCE_COLOR|TZ)$/.test(name)
}

function readEnvFile(): string | null {
  try {
    return readFileSync('.env', 'utf8')
      .replace(/^\uFEFF/, '')
      .replace(/\r\n?/g, '\n')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return null
    throw new CliError(
      code === 'EISDIR'
        ? '.env is a folder, but settings are read from a file with this name. Rename the folder, or use another working directory.'
        : `The file .env cannot be read (${code}). Give this user permission to read it, or use another working directory.`,
    )
  }
}

/**
 * Matches one line that Node's parser of `.env` files understands. Node skips other lines without an error, so a setting would be missing.
 */
const understood =
  /[ \t]*(?:(?:export[ \t]+)?[A-Za-z_][\w.-]*[ \t]*=[ \t]*(?:"[^"\0]*"|'[^'\0]*'|`[^`\0]*`|[^\s"'`#\0][^\n\0]*)?[ \t]*)?(?:#[^\n]*)?(?:\n|$)/y

/** Returns the number of the first line that Node's parser would skip. Null when every line is understood. */
export function findWrongLine(text: string): number | null {
  understood.lastIndex = 0
  for (let start = 0; start < text.length; start = understood.lastIndex)
    if (!understood.test(text)) return text.slice(0, start).split('\n').length
  return null
}
