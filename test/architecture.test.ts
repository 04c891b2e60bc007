/** The folder tree is the architecture: imports point one way, and what must not be there is not. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'

const root = new URL('..', import.meta.url).pathname
const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter(path =>
  path.endsWith('.ts'),
)
const read = (path: string) => readFileSync(join(root, path), 'utf8')

interface Rule {
  /** Places under src/ that may be imported: files, or folders with everything in them. */
  ours: readonly string[]
  /** Packages that may be imported; node: modules are always allowed but in the domain. */
  packages: readonly string[]
}

const domain = ['invoice.ts', 'document.ts', 'errors.ts']

/** What the engines have in common. */
const storeContracts = [
  ...[
    'store.ts',
    'document-store.ts',
    'connector-store.ts',
    'search.ts',
    'facts.ts',
    'counting.ts',
    'contents.ts',
    'migrations.ts',
  ],
].map(file => `store/${file}`)

/** The longest match decides. A place may always import from itself. */
const rules: Record<string, Rule> = {
  'invoice.ts': { ours: ['document.ts'], packages: [] },
  'document.ts': { ours: [], packages: [] },
  'errors.ts': { ours: [], packages: [] },
  'sources.ts': { ours: domain, packages: [] },
  'store/postgres/': {
    ours: [...domain, ...storeContracts, 'store/shared/'],
    packages: ['pg'],
  },
  'store/sqlite/': {
    ours: [...domain, ...storeContracts, 'store/shared/'],
    packages: [],
  },
  'store/shared/': { ours: [...domain, ...storeContracts], packages: [] },
  'store/': { ours: [...domain, 'store/shared/db.ts'], packages: [] },
  'access/': { ours: domain, packages: [] },
  'sync/': {
    ours: [...domain, 'sources.ts', 'store/store.ts', 'store/document-store.ts', 'store/connector-store.ts'],
    packages: ['pino'],
  },
  'doctor/': {
    ours: [
      ...[...domain, 'sources.ts', 'store/store.ts', 'store/document-store.ts', 'store/facts.ts'],
      'store/connector-store.ts',
      ...['stripe/', 'invoicexpress/', 'upstream/', 'pdf/', 'sync/'],
    ],
    packages: ['stripe'],
  },
  'sandbox/': { ours: domain, packages: [] },
  'stripe/': {
    ours: [...domain, 'sources.ts', 'pdf/', 'upstream/', 'server/'],
    packages: ['stripe', 'pino'],
  },
  'invoicexpress/': { ours: [...domain, 'sources.ts', 'pdf/', 'upstream/'], packages: ['typebox'] },
  'upstream/': { ours: ['sources.ts'], packages: ['cockatiel'] },
  'pdf/': { ours: [...domain, 'sources.ts'], packages: [] },
  'server/': { ours: [], packages: [] },
  'http/': {
    ours: [...domain, 'sources.ts', 'store/store.ts', 'store/search.ts', 'access/', 'server/'],
    packages: ['fastify', 'typebox', 'pino', '@fastify/swagger'],
  },
  'cli/': {
    ours: [
      ...[...domain, 'sources.ts', 'store/', 'access/', 'sync/', 'sandbox/', 'pdf/', 'http/'],
      ...['stripe/', 'invoicexpress/', 'doctor/'],
    ],
    packages: ['commander', 'fastify', 'pino'],
  },
}

function ruleFor(path: string): [string, Rule] {
  const place = Object.keys(rules).find(place =>
    place.endsWith('/') ? path.startsWith(place) : path === place,
  )
  assert.ok(place !== undefined, `src/${path} is in no place that the architecture knows`)
  return [place, rules[place] as Rule]
}

function importsOf(path: string): string[] {
  const code = read(join('src', path))
  const found = code.matchAll(
    /^(?:import|export)\b[^'";]*?\bfrom '([^']+)'|^import '([^']+)'|\bimport\('([^']+)'\)/gm,
  )
  return [...found].map(match => match[1] ?? match[2] ?? match[3] ?? '')
}

/** What is wrong with one import, if anything. */
function objection(path: string, target: string): string | null {
  const [place, { ours, packages }] = ruleFor(path)
  if (target.startsWith('.')) {
    const file = relative(join(root, 'src'), join(root, 'src', dirname(path), target))
    if (file === '../package.json') return null
    const allowed = [place, ...ours].some(other =>
      other.endsWith('/') ? file.startsWith(other) : file === other,
    )
    return allowed ? null : `src/${path} imports src/${file}`
  }
  if (target.startsWith('node:')) return domain.includes(path) ? `src/${path} imports ${target}` : null
  return packages.includes(
    target
      .split('/')
      .slice(0, target.startsWith('@') ? 2 : 1)
      .join('/'),
  )
    ? null
    : `src/${path} imports ${target}`
}

test('imports point one way: every import is one the architecture allows', () => {
  const objections = sources.flatMap(path =>
    importsOf(path)
      .map(target => objection(path, target))
      .filter(Boolean),
  )
  assert.deepEqual(objections, [])
  assert.ok(sources.length > 20 && sources.flatMap(importsOf).length > 50, 'the imports are found')
})

test('an import against the direction would be told', () => {
  assert.equal(objection('invoice.ts', './errors.ts'), 'src/invoice.ts imports src/errors.ts')
  assert.equal(objection('invoice.ts', 'node:fs'), 'src/invoice.ts imports node:fs')
  assert.equal(
    objection('store/sqlite/reader.ts', '../../http/app.ts'),
    'src/store/sqlite/reader.ts imports src/http/app.ts',
  )
  assert.equal(
    objection('http/app.ts', '../store/sqlite/writer.ts'),
    'src/http/app.ts imports src/store/sqlite/writer.ts',
  )
  assert.equal(objection('http/app.ts', '../cli/config.ts'), 'src/http/app.ts imports src/cli/config.ts')
  assert.equal(objection('sync/import-invoices.ts', 'fastify'), 'src/sync/import-invoices.ts imports fastify')
})

test('no two modules import each other in a circle', () => {
  const graph = new Map(
    sources.map(path => [
      path,
      importsOf(path)
        .filter(target => target.startsWith('.'))
        .map(target => join(dirname(path), target)),
    ]),
  )
  const done = new Set<string>()
  const visit = (path: string, trail: string[]): void => {
    assert.ok(!trail.includes(path), [...trail, path].join(' → '))
    if (done.has(path)) return
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path])
    done.add(path)
  }
  for (const path of sources) visit(path, [])
})

test('config.ts alone reads the environment, and only the CLI ends the process or listens to signals', () => {
  for (const path of sources) {
    const code = read(join('src', path))
    if (path !== 'cli/config.ts') assert.doesNotMatch(code, /process\.env/, path)
    if (!path.startsWith('cli/')) assert.doesNotMatch(code, /process\.(exit|on|once|argv|std)/, path)
  }
})

test('files are named in kebab-case; there is no utils, common, helpers or types, and no file of over 300 lines', () => {
  for (const path of sources) {
    assert.match(path, /^([a-z0-9-]+\/)*[a-z0-9-]+\.ts$/)
    assert.doesNotMatch(path, /\b(utils?|common|helpers?|types|index|misc)\b/)
    assert.ok(read(join('src', path)).split('\n').length <= 300, `src/${path} is long`)
  }
})

test('only packages of package.json are imported, and every runtime package is', () => {
  const { dependencies } = JSON.parse(read('package.json'))
  const used = new Set(
    sources
      .flatMap(importsOf)
      .filter(target => !target.startsWith('.') && !target.startsWith('node:'))
      .map(target =>
        target
          .split('/')
          .slice(0, target.startsWith('@') ? 2 : 1)
          .join('/'),
      ),
  )
  for (const name of used) assert.ok(!builtinModules.includes(name), `${name} without node:`)
  assert.deepEqual([...used].sort(), Object.keys(dependencies).sort())
})
