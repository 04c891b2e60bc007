/** Settings as a command shows them: flags, and in its help the ones of the environment alone. */
import { type Command, Help } from 'commander'
import { type Setting, type SettingDefinition, settings } from './settings.ts'

const helpWidth = 78

export function addSettings(command: Command, names: readonly Setting[]): Command {
  const definitions = names.map((name): [Setting, SettingDefinition] => [name, settings[name]])
  for (const [name, { meaning, flag, default: value }] of definitions)
    if (flag !== null) command.option(flag, `${plain(meaning)} (env: ${name}, default: ${value})`)
  const environmentOnly = definitions.filter(([, { flag }]) => flag === null)
  if (environmentOnly.length === 0) return command
  // Written when somebody asks for help: to wrap it takes longer than all else of a command line.
  return command.addHelpText('after', () =>
    environmentOnly
      .map(
        ([name, { meaning, default: value }]) =>
          `\n${name} (environment only, default: ${value}):\n${indent(plain(meaning))}`,
      )
      .join('\n'),
  )
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
