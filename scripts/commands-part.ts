/** The part of docs/configuration.md about the commands: a heading each, with what it does, its settings and its options. */
import type { Command } from 'commander'
import { SettingsCommand } from '../src/cli/settings/read-settings.ts'
import { type Setting, settingNames } from '../src/cli/settings/settings.ts'
import { loadCommands } from './public-names.ts'
import { writeTable } from './write-table.ts'

/** Where a page tells more. */
const pages: Readonly<Record<string, string>> = {
  up: 'See [run it](run.md).',
  serve: 'See [run it](run.md).',
  sync: 'See [synchronize](sync.md).',
  status: 'See [status](sync.md#status).',
  doctor: 'See [doctor](admin.md#fatura-doctor).',
  reconcile: 'See [comparing the two systems](linking.md#comparing-the-two-systems).',
  'report vat': 'See [the VAT of a month](linking.md#the-vat-of-a-month).',
  export: 'See [export](export.md).',
  explain: 'See [explaining one invoice](linking.md#explaining-one-invoice).',
  import: 'See [import](import.md).',
  'token create': 'See [tokens](access.md#tokens).',
  'key add': 'See [customer links](access.md#customer-links).',
  link: 'See [customer links](access.md#customer-links).',
  'webhook add': 'See [webhooks to your programs](sync.md#webhooks-to-your-programs).',
  'account show': 'See [whose records a store holds](sync.md#whose-records-a-store-holds).',
  'account change': 'See [whose records a store holds](sync.md#whose-records-a-store-holds).',
  migrate: 'See [upgrade](upgrade.md), and [after a restore](backup.md#after-a-restore).',
  copy: 'See [copying a store](#copying-a-store).',
  sandbox: 'See [the sandbox](sandbox.md).',
}

export async function writeCommands(): Promise<string> {
  const all = (await loadCommands()).filter(({ command }) => command.commands.length === 0)
  return all.map(({ name, command }) => writeCommand(name, command)).join('\n')
}

function writeCommand(name: string, command: Command): string {
  const used = command instanceof SettingsCommand ? command.used : []
  const words = command.registeredArguments.map(argument => ` <${argument.name()}>`).join('')
  const about = [command.description(), pages[name]].filter(Boolean).join(' ')
  return [
    `### \`fatura ${name}${words}\``,
    about,
    `Settings: ${listSettings(used)}.`,
    ...writeOptions(command),
  ]
    .map(part => `${part}\n`)
    .join('\n')
}

/** The shorter of the settings that it takes and those that it does not. */
function listSettings(used: readonly Setting[]): string {
  const code = (names: readonly Setting[]) => names.map(name => `\`${name}\``).join(', ')
  if (used.length === 0) return 'none'
  const others = settingNames.filter(name => !used.includes(name))
  if (others.length === 0) return 'all'
  return others.length < used.length ? `all but ${code(others)}` : code(used)
}

function writeOptions(command: Command): string[] {
  const own = command.options.filter(({ description }) => !description.includes('(env: '))
  if (own.length === 0) return []
  const rows = own.map(({ flags, description, argChoices = [], defaultValue }) => {
    const choices = argChoices.length === 0 ? '' : ` (${argChoices.join(', ')})`
    const usual = defaultValue === undefined || defaultValue === false ? '' : `\`${defaultValue}\``
    return [`\`${flags}\``, `${description}${choices}`, usual]
  })
  return [writeTable(['Option', 'Meaning', 'Default'], rows).trimEnd()]
}
