/** Names that every later version keeps: of the API, settings, commands, package exports, columns of exports and metrics. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { settingNames } from '../src/cli/settings/settings.ts'
import { invoiceColumns, lineColumns } from '../src/export/columns.ts'

const root = join(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

export async function listPublicNames(): Promise<string[]> {
  const { paths, components } = JSON.parse(read('openapi.json'))
  const exported = {
    'fatura/client': await import('../src/client/client.ts'),
    'fatura/link': await import('../src/customer-link/create-link.ts'),
  }
  const metrics = readdirSync(join(root, 'src/metrics'))
    .map(file => read(`src/metrics/${file}`))
    .join()
  return [
    ...namesOf('api', { paths, components }),
    ...settingNames.map(name => `setting ${name}`),
    ...commandNames(),
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

/** Each command, and each option of it, as the completion of a shell knows them. */
function commandNames(): string[] {
  const script = execFileSync(process.execPath, [join(root, 'bin/fatura.js'), 'completion', 'fish'])
  const lines = script.toString().matchAll(/__fatura_at '(.*?)'"(?: -f)?(?: -a '(.*?)')?(?: -l (\S+))?/g)
  return [...lines].flatMap(([, place = '', words, option]) => {
    if (option !== undefined) return `command fatura${place} --${option}`
    return words?.split(' ').map(word => `command fatura${place} ${word}`) ?? []
  })
}
