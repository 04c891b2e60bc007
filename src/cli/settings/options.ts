/** Settings as a command shows them: flags, and in its help the ones of the environment alone. */
import { type Command, Help } from 'commander'
import { type Setting, type SettingDefinition, settings } from './settings.ts'

const helpWidth = 78

export function addSettings(command: Command, names: readonly Setting[]): Command {
  const environmentOnly: string[] = []
  for (const name of names) {
    const { meaning, flag, default: value }: SettingDefinition = settings[name]
    if (flag !== null) command.option(flag, `${plain(meaning)} (env: ${name}, default: ${value})`)
    else environmentOnly.push(`\n${name} (environment only, default: ${value}):\n${indent(plain(meaning))}`)
  }
  return environmentOnly.length === 0 ? command : command.addHelpText('after', environmentOnly.join('\n'))
}

/** Markdown without its marks, nor its hints at other pages. */
function plain(meaning: string): string {
  return meaning
    .replace(/ See \[[^\]]+\]\([^)]+\)\./g, '')
    .replace(/\[([^\]]+)\]\([^)]+\)/g, '$1')
    .replaceAll('`', '')
}

function indent(text: string): string {
  return new Help().boxWrap(text, helpWidth).replace(/^/gm, '  ')
}
