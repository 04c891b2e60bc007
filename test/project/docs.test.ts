/** The docs are held against the code, both ways. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { withSettingsTable } from '../../scripts/settings-table.ts'
import { type SettingDefinition, settingNames, settings } from '../../src/cli/settings/settings.ts'
import { errorCodes } from '../../src/errors.ts'

const root = new URL('../..', import.meta.url).pathname
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const pages = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter(path => path.endsWith('.md'))
    .map(path => `docs/${path}`),
]

/** The first cells of a page's table rows that are code. */
const rows = (path: string) =>
  [...read(path).matchAll(/^\| `([^`]+)` \|(.*)$/gm)].map(([, name = '', rest = '']) => ({ name, rest }))

test('docs/errors.md lists every error code with its status, and no other', () => {
  const listed = rows('docs/errors.md').map(({ name, rest }) => `${name} ${rest.split('|')[0]?.trim()}`)
  assert.deepEqual(
    listed.sort(),
    Object.entries(errorCodes)
      .map(([code, { status }]) => `${code} ${status}`)
      .sort(),
  )
})

test('docs/configuration.md lists every setting as the table of settings does, and no other', () => {
  const page = read('docs/configuration.md')
  const listed = rows('docs/configuration.md').map(({ name }) => name)
  assert.deepEqual(
    listed.filter(name => /^[A-Z_]+$/.test(name)),
    settingNames,
  )
  assert.ok(withSettingsTable(page) === page, 'docs/configuration.md is out of date: npm run settings')
})

test('every default is a value that the setting takes, and every flag is named after its setting', () => {
  for (const name of settingNames) {
    const { default: value, flag, parse }: SettingDefinition = settings[name]
    assert.doesNotThrow(() => parse(value), name)
    if (flag !== null) assert.equal(flag.split(' ')[0], `--${name.toLowerCase().replaceAll('_', '-')}`)
  }
})

test('docs/dependencies.md names every direct dependency with its reason, and no other; at most 15 at run time', () => {
  const { dependencies, devDependencies } = JSON.parse(read('package.json'))
  const listed = rows('docs/dependencies.md')
  assert.deepEqual(
    listed.map(({ name }) => name).sort(),
    Object.keys({ ...dependencies, ...devDependencies }).sort(),
  )
  for (const { name, rest } of listed) assert.ok(rest.length > 20, `${name} has a reason`)
  assert.ok(Object.keys(dependencies).length <= 15)
})

test('the lock file holds no download address, and pins every package by hash', () => {
  const { packages } = JSON.parse(read('package-lock.json'))
  for (const [path, { resolved, integrity, link }] of Object.entries<Record<string, unknown>>(packages)) {
    if (path === '' || link === true) continue
    assert.equal(resolved, undefined, path)
    assert.match(String(integrity), /^sha512-/, path)
  }
})

test('every link between the docs leads somewhere', () => {
  for (const page of pages)
    for (const [, target = ''] of read(page).matchAll(/\]\((?!https?:|mailto:|#)([^)#\s]+)/g))
      assert.ok(existsSync(join(root, dirname(page), target)), `${page} links to ${target}`)
})

test('every command that the docs show is one that exists', () => {
  const help = execFileSync(process.execPath, [join(root, 'bin/fatura.js'), '--help'], { encoding: 'utf8' })
  const commands = [...help.matchAll(/^ {2}([a-z]+)\b/gm)].map(([, name]) => name)
  const { scripts } = JSON.parse(read('package.json'))
  for (const page of pages) {
    for (const [, name] of read(page).matchAll(/(?:npx fatura|`fatura|^fatura) ([a-z]+)/gm))
      assert.ok(commands.includes(name), `${page}: fatura ${name}`)
    for (const [, name = ''] of read(page).matchAll(/npm run ([a-z:]+)/g))
      assert.ok(name in scripts, `${page}: npm run ${name}`)
  }
})
