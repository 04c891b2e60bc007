/** The docs are held against the code, both ways. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { pagesWithTables, withTables } from '../../scripts/docs-tables.ts'
import { type Promised, promises } from '../../scripts/promises.ts'
import { withFigures } from '../../scripts/run-campaign.ts'
import {
  type SettingDefinition,
  settingNames,
  settings,
  variableNames,
} from '../../src/cli/settings/settings.ts'
import { errorCodes } from '../../src/domain/errors.ts'
import { invoiceFields } from '../../src/domain/invoice.ts'
import { listParameters } from '../../src/domain/list-query.ts'

const root = new URL('../..', import.meta.url).pathname
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const pages = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'SECURITY.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter(path => path.endsWith('.md'))
    .map(path => `docs/${path}`),
]

/** A page's part under a heading, up to the next heading of any depth. */
function section(path: string, heading: string): string {
  const [, text] = new RegExp(`^#+ ${heading}\\n(.*?)^#`, 'ms').exec(`${read(path)}\n# end`) ?? []
  return text ?? assert.fail(`${path} has no part "${heading}"`)
}

/** The first cells of a text's table rows that are code. */
const rowsOf = (text: string) =>
  [...text.matchAll(/^\| `([^`]+)` \|(.*)$/gm)].map(([, name = '', rest = '']) => ({ name, rest }))
const codeIn = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)

test('docs/errors.md lists every error code with its status, and no other', () => {
  const listed = rowsOf(section('docs/errors.md', 'Codes')).map(
    ({ name, rest }) => `${name} ${rest.split('|')[0]?.trim()}`,
  )
  assert.deepEqual(
    listed.sort(),
    Object.entries(errorCodes)
      .map(([code, { status }]) => `${code} ${status}`)
      .sort(),
  )
})

test('docs/api.md and README.md list every route, and no other', () => {
  const { paths } = JSON.parse(read('openapi.json'))
  const wanted = Object.keys(paths).map(path => path.replace(/\{(\w+)\}/g, '<$1>'))
  const listed = (text: string) =>
    [...text.matchAll(/`GET (\S+)`/g)].map(([, path = '']) =>
      path.replace('…', '/api/v1/client/<customerId>'),
    )
  assert.deepEqual(listed(section('docs/api.md', 'Routes')).sort(), wanted.sort())
  assert.deepEqual(listed(section('README.md', 'What the API returns')).sort(), wanted.sort())
})

test('docs/api.md, docs/export.md and README.md list every filter of the list, and no other', () => {
  assert.deepEqual(
    rowsOf(section('docs/api.md', 'List')).map(({ name }) => name),
    listParameters,
  )
  const [, inReadme = ''] = /^\| `GET \S+\/invoices` \|(.*)\|$/m.exec(read('README.md')) ?? []
  assert.deepEqual(codeIn(inReadme).sort(), listParameters.toSorted())
  const flags = section('docs/export.md', 'Filters').matchAll(/^\| `--.*\|(.*)\|$/gm)
  assert.deepEqual(
    [...flags].flatMap(([, parameters = '']) => codeIn(parameters)).sort(),
    listParameters.filter(name => !['page', 'page_size', 'expand'].includes(name)).sort(),
  )
})

test('docs/api.md lists every field of an invoice, in their order', () => {
  assert.deepEqual(
    rowsOf(section('docs/api.md', 'Invoice summary')).map(({ name }) => name),
    [...invoiceFields],
  )
})

test('docs/configuration.md lists exactly the settings of the settings table', () => {
  const listed = rowsOf(read('docs/configuration.md')).map(({ name }) => name)
  assert.deepEqual(
    listed.filter(name => /^[A-Z_]+$/.test(name)),
    settingNames,
  )
})

test('the tables of settings, errors, metrics and log messages in the docs equal the code', async () => {
  for (const path of pagesWithTables) {
    const page = read(path)
    assert.match(page, /^<!-- table: /m, path)
    assert.ok((await withTables(page)) === page, `${path} is out of date: npm run tables`)
  }
})

test('every default is a value that its setting accepts, and every flag has its setting’s name', () => {
  for (const name of settingNames) {
    const { default: value, flag, parse }: SettingDefinition = settings[name]
    assert.doesNotThrow(() => parse(value), name)
    if (flag !== undefined) assert.equal(flag.split(' ')[0], `--${name.toLowerCase().replaceAll('_', '-')}`)
  }
})

test('docs/dependencies.md gives a reason for each direct dependency, with at most 15 at run time', () => {
  const { dependencies, devDependencies } = JSON.parse(read('package.json'))
  const { devDependencies: tools } = JSON.parse(read('tools/package.json'))
  const listed = rowsOf(read('docs/dependencies.md'))
  assert.deepEqual(
    listed.map(({ name }) => name).sort(),
    Object.keys({ ...dependencies, ...devDependencies, ...tools }).sort(),
  )
  for (const { name, rest } of listed) assert.ok(rest.length > 20, `${name} has a reason`)
  assert.ok(Object.keys(dependencies).length <= 15)
})

test('the lock file has a hash and no download address for every package', () => {
  const { packages } = JSON.parse(read('package-lock.json'))
  for (const [path, { resolved, integrity, link }] of Object.entries<Record<string, unknown>>(packages)) {
    if (path === '' || link === true) continue
    assert.equal(resolved, undefined, path)
    assert.match(String(integrity), /^sha512-/, path)
  }
})

/** What GitHub calls the anchors of a page's headings. */
const anchorsOf = (path: string) =>
  [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-'),
  )

test('every link in the docs leads to an existing page and heading', () => {
  for (const page of pages)
    for (const [, path = '', anchor = ''] of read(page).matchAll(
      /\]\((?!https?:|mailto:)([^)#\s]*)#?([^)\s]*)\)/g,
    )) {
      const target = path === '' ? page : join(dirname(page), path)
      assert.ok(existsSync(join(root, target)), `${page} links to ${path}`)
      if (anchor !== '' && target.endsWith('.md'))
        assert.ok(anchorsOf(target).includes(anchor), `${page} links to ${path}#${anchor}`)
    }
})

test('every file, folder, table and setting in the docs exists', () => {
  const tables = new Set(
    ['sqlite', 'postgres'].flatMap(engine =>
      readdirSync(join(root, `src/store/${engine}/migrations`)).flatMap(file =>
        [
          ...read(`src/store/${engine}/migrations/${file}`).matchAll(
            /CREATE (?:(?:UNLOGGED )?TABLE|VIEW) (?:fatura\.)?(\w+)/g,
          ),
        ].map(([, name]) => name),
      ),
    ),
  )
  assert.ok(tables.size > 10)
  for (const page of pages.filter(page => page !== 'CHANGELOG.md')) {
    const text = read(page)
    for (const [, path = ''] of text.matchAll(/`((?:src|test|bench|docs|scripts|bin|ops)\/[\w./-]+\w\/?)`/g))
      if (!path.includes('000N')) assert.ok(existsSync(join(root, path)), `${page} names ${path}`)
    for (const [, table = ''] of text.matchAll(/`fatura\.(?!db\b)([a-z_]+)`/g))
      assert.ok(tables.has(table), `${page} names the table ${table}`)
    for (const [, name = ''] of text.matchAll(
      /`((?:DATABASE|STRIPE|INVOICEXPRESS|LINK|RATE|LOG|SHUTDOWN|AUTH|PUBLIC)_[A-Z_]+[A-Z])(?:=[^`]*)?`/g,
    ))
      assert.ok(variableNames.includes(name), `${page} names the setting ${name}`)
  }
})

test('every command in the docs exists', () => {
  const help = execFileSync(process.execPath, [join(root, 'bin/fatura.js'), '--help'], { encoding: 'utf8' })
  const commands = [...help.matchAll(/^ {2}([a-z]+)\b/gm)].map(([, name]) => name)
  const { scripts } = JSON.parse(read('package.json'))
  for (const page of pages) {
    for (const [, name] of read(page).matchAll(/(?:npx fatura|`fatura|^fatura) ([a-z]+)/gm))
      assert.ok(commands.includes(name), `${page}: fatura ${name}`)
    for (const [, name = ''] of read(page).matchAll(/npm run ([a-z:-]+)/g))
      assert.ok(name in scripts, `${page}: npm run ${name}`)
    // What is not installed at the root, npx fetches from npm: another package of that name, perhaps.
    for (const [, name = ''] of read(page).matchAll(/`npx (?:--prefix \S+ )?([a-z]+)/g))
      assert.ok(
        name === 'fatura' || existsSync(join(root, 'node_modules/.bin', name)),
        `${page}: npx ${name}`,
      )
  }
})

test('docs/reliability.md has a row for each promise with a figure, and its tests exist', () => {
  const page = read('docs/reliability.md')
  assert.ok(withFigures(page, new Map()) === page, 'the table is out of date: npm run test:campaign -- R1')
  const ids = Object.keys(promises)
  for (const id of ids) assert.match(id, /^[RS]\d+$/)
  for (const [id, { steps }] of Object.entries<Promised>(promises)) {
    const texts = steps.map(({ file }) => read(file))
    const isReported = steps.some(
      ({ readFigure }, index) => readFigure !== undefined || texts[index]?.includes(`'${id}'`),
    )
    assert.ok(isReported, `no test reports the figure of ${id}`)
    for (const [index, { only }] of steps.entries())
      for (const name of only?.split('|') ?? []) assert.ok(texts[index]?.includes(name), `${id}: ${name}`)
  }
})
