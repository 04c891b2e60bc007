/** Flags, help and values of a command's settings. A flag wins over the environment, and the environment wins over the default. */
import { Command, Help } from 'commander'
import { CliError } from '../terminal/cli-error.ts'
import { printable } from '../terminal/table.ts'
import { loadEnvFile, readVariable } from './environment.ts'
import { InvalidSetting } from './parsers.ts'
import { readSecretFile } from './secret-file.ts'
import { fileVariable, type Setting, type SettingDefinition, type Settings, settings } from './settings.ts'

/** Values of a command's flags, under the names that commander gives the flags. */
export type Options = Readonly<Record<string, unknown>>

/** Returns the values of the named settings. Throws a `CliError` of one line for a wrong value. */
export function readSettings<K extends Setting>(
  options: Options,
  names: readonly K[],
  { envFile = true } = {},
): Pick<Settings, K> {
  if (envFile) loadEnvFile()
  return Object.fromEntries(names.map(name => [name, readSetting(name, options)])) as Pick<Settings, K>
}

/** Whether a flag, the environment or a secret file has a value. An empty value counts as none. */
export function isSet(name: Setting, options: Options): boolean {
  return Boolean(readText(name, options) || readFilePath(name))
}

function readSetting(name: Setting, options: Options): unknown {
  const setting: SettingDefinition = settings[name]
  const typed = readFlag(name, options)
  const path = typed ? undefined : readFilePath(name)
  if (path && readVariable(name))
    throw new CliError(`${name} and ${fileVariable(name)} are both set. Remove one of them.`)
  const text = path ? readSecretFile(`${fileVariable(name)}`, path) : readText(name, options)
  try {
    return setting.parse(text || setting.default)
  } catch (error) {
    if (!(error instanceof InvalidSetting)) throw error
    const origin = path ? `, in the file ${printable(path)},` : ''
    const value = setting.isSecret === true ? '' : `, not '${printable(text ?? '')}'`
    throw new CliError(`${name}${origin} ${error.message}${value}.`)
  }
}

function readText(name: Setting, options: Options): string | undefined {
  return readFlag(name, options) || readVariable(name)
}

function readFlag(name: Setting, options: Options): string | undefined {
  const option = name.toLowerCase().replace(/_./g, ([, letter = '']) => letter.toUpperCase())
  const flag = 'flag' in settings[name] ? options[option] : undefined
  return typeof flag === 'string' ? flag : undefined
}

function readFilePath(name: Setting): string | undefined {
  const variable = fileVariable(name)
  return variable === null ? undefined : readVariable(variable)
}

const helpWidth = 78

export class SettingsCommand extends Command {
  used: readonly Setting[] = []

  /** Adds text to the help. Each line is a paragraph and is wrapped, except indented lines. */
  notes(text: string): this {
    return this.addHelpText('after', () => `\n${wrap(text)}`)
  }

  /** Adds the flags of the settings. Settings without a flag are described at the end of the help. */
  settings(names: readonly Setting[]): this {
    this.used = names
    const definitions = names.map((name): [Setting, SettingDefinition] => [name, settings[name]])
    for (const [name, { meaning, flag, default: value }] of definitions)
      if (flag !== undefined)
        this.option(flag, `${plain(meaning)} (env: ${variablesOf(name)}, default: ${value})`)
    const environmentOnly = definitions.filter(([, { flag }]) => flag === undefined)
    // The text is made only when the help is shown. Wrapping takes longer than everything else at the start of a command.
    const describe = () =>
      environmentOnly.map(
        ([name, { meaning, default: value }]) =>
          `\n${variablesOf(name)} (environment only):\n${indent(plain(meaning))}\n${indent(`Default: ${value}`)}`,
      )
    return environmentOnly.length === 0 ? this : this.addHelpText('after', () => describe().join('\n'))
  }
}

function variablesOf(name: Setting): string {
  const variable = fileVariable(name)
  return variable === null ? name : `${name} or ${variable}`
}

/** Removes Markdown's marks, and sentences that point to other pages. */
function plain(meaning: string): string {
  return meaning
    .replace(/ See \[[^\]]+\]\([^)]+\)\./g, '')
    .replace(/\[([^\]]+)\]\([^)]+\)/g, '$1')
    .replaceAll('`', '')
}

/** Wraps to 78 characters, which fits a terminal of 80 columns. */
export function wrap(text: string): string {
  const help = new Help()
  const wrapLine = (line: string) => (line.startsWith(' ') ? line : help.boxWrap(line, helpWidth))
  return text.split('\n').map(wrapLine).join('\n')
}

function indent(text: string): string {
  return new Help().boxWrap(text, helpWidth).replace(/^/gm, '  ')
}
