/** Names that every later version keeps: of the API, settings, commands, package exports, columns of exports and metrics. */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Command } from 'commander'
import { settingNames } from '../src/cli/settings/settings.ts'
import { invoiceColumns, lineColumns } from '../src/export/columns.ts'

const root = join(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

export async function listPublicNames(): Promise<string[]> {
  const { paths, components } = JSON.parse(read('openapi.json'))
  const exported = {
    'fatura/client': await import('../src/sdk/client.ts'),
    'fatura/link': await import('../src/sdk/link.ts'),
  }
  const metrics = readdirSync(join(root, 'src/operations/metrics'))
    .map(file => read(`src/operations/metrics/${file}`))
    .join()
  return [
    ...namesOf('api', { paths, components }),
    ...settingNames.map(name => `setting ${name}`),
    ...(await commandNames()),
    ...Object.entries(exported).flatMap(([from, names]) =>
      Object.keys(names).map(name => `export ${from} ${name}`),
    ),
    ...invoiceColumns.map(({ name }) => `invoice column ${name}`),
    ...lineColumns.map(({ name }) => `line column ${name}`),
    ...[...new Set(metrics.match(/\bfatura_[a-z_]+\b/g))].map(name => `metric ${name}`),
  ].sort()
}

/** Routes, parameters, fields and codes of the OpenAPI document, but none of its texts. */
function namesOf(place: string, value: object): string[] {
  return Object.entries(value).flatMap(([key, child]) => {
    const name = `${place}/${child?.name ?? key}`
    if (typeof child === 'string') return Array.isArray(value) ? `${place}/${child}` : []
    if (typeof child !== 'object' || child === null || /^(examples?|default)$/.test(key)) return []
    return [name, ...namesOf(name, child)]
  })
}

/** Each command, and each option of it. */
async function commandNames(): Promise<string[]> {
  return (await listCommands()).flatMap(({ name, options }) => [
    `command ${name}`,
    ...options.map(option => `command ${name} ${option}`),
  ])
}

/** Each command with its words, as in "token create", and its long options, in the order of the files. */
export async function listCommands(): Promise<{ name: string; options: string[] }[]> {
  return (await loadCommands()).map(({ name, command }) => {
    return { name, options: command.options.flatMap(({ long }) => long ?? []) }
  })
}

/** Each command with its words, in the order of the files. */
export async function loadCommands(): Promise<NamedCommand[]> {
  const folder = join(root, 'src/cli/commands')
  const listed = await Promise.all(
    readdirSync(folder).map(async file => {
      const { [`${basename(file, '.ts')}Command`]: create } = await import(join(folder, file))
      return create === undefined ? [] : walk(create(), '')
    }),
  )
  return listed.flat()
}

interface NamedCommand {
  name: string
  command: Command
}

function walk(command: Command, above: string): NamedCommand[] {
  const name = `${above}${command.name()}`
  return [{ name, command }, ...command.commands.flatMap(each => walk(each, `${name} `))]
}
