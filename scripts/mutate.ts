/** Runs Stryker's command runner over a few files and the fast tests that must notice a change in them. */
import { spawnSync } from 'node:child_process'
import { accessSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrateStore } from '../src/store/engines.ts'

const access = (...names: string[]) => names.map(name => `src/http/access/${name}.ts`)
const inTests = (file: string) => file.replace('src/', 'test/')
const skip = (names: string) => `--test-skip-pattern="/${names}/"`
const fast = skip('on (sqlite|postgres|citus)|the rate limiter')

/** What is changed, and the arguments of node --test. */
const parts: Record<string, { files: string[]; tests: string[] }> = {
  link: { files: access('verify-link', 'link-form'), tests: ['test/http/access/link.test.ts'] },
  jwt: {
    files: access('verify-provider', 'verify-claims', 'open-verifiers'),
    tests: ['test/http/access/jwt.test.ts'],
  },
  parse: {
    files: access('parse-jwt', 'parse-object', 'import-keys'),
    tests: ['test/http/access/jwt.test.ts'],
  },
  keys: { files: access('key-set'), tests: ['test/http/access/key-set.test.ts'] },
  tokens: {
    files: access('authenticate', 'short-cache', 'lookup-guard', 'grant'),
    tests: [fast, ...access('link.test', 'guard.test', 'access.test').map(inTests)],
  },
  limits: {
    files: access('token', 'windows'),
    tests: [fast, ...access('guard.test', 'access.test').map(inTests)],
  },
  queue: { files: access('fair-queue'), tests: ['test/http/access/fair-queue.test.ts'] },
  linking: {
    files: ['src/domain/link/derive-link.ts', 'src/domain/link/link.ts', 'src/domain/link/reference.ts'],
    tests: ['test/domain/link/link.test.ts', 'test/domain/link/reference.test.ts'],
  },
  decide: {
    files: ['src/sync/invoices/decide.ts', 'src/sync/set-aside.ts', 'src/sources/platform-invoice.ts'],
    tests: [
      skip('100,000 random answers'),
      ...['decide', 'decisions-whole', 'set-aside'].map(name => `test/sync/${name}.test.ts`),
    ],
  },
  ranges: {
    files: ['src/sync/invoices/list-plan.ts', 'src/sync/invoices/ranges.ts'],
    tests: [
      skip('a list of 5,000 invoices'),
      ...['list-plan', 'list-plan-steps', 'ranges'].map(name => `test/sync/${name}.test.ts`),
    ],
  },
  stamps: { files: ['src/store/stamps.ts'], tests: ['test/store/stamps.test.ts'] },
  counters: {
    files: ['src/store/sql/counters.ts', 'src/store/sql/write-counters.ts'],
    tests: [
      skip('on (postgres|citus)'),
      ...['store/changes', 'store/counters', 'http/summary'].map(name => `test/${name}.test.ts`),
    ],
  },
  http: {
    files: ['src/http/auth.ts', 'src/http/resource-metadata.ts'],
    tests: [
      skip(
        'on (postgres|citus)|the rate limiter|forged tokens|valid tokens that arrive|its time is over|clock is changed|' +
          'within a second|mix customers|the same lists|only spaces|case-insensitive|malformed, exp|are unreadable|at once, and|' +
          'count for one rate limit',
      ),
      'test/http/identity.test.ts',
      'test/http/access/access.test.ts',
    ],
  },
}

const part = parts[process.argv[2] ?? '']
if (part === undefined) {
  process.stderr.write(`Say which part: ${Object.keys(parts).join(', ')}.\n`)
  process.exit(1)
}
// Stryker only warns of a file that is not there, and a pattern that names no test skips nothing.
for (const file of part.files) accessSync(file)
const sources = part.tests.filter(test => test.endsWith('.ts')).map(file => readFileSync(file, 'utf8'))
for (const pattern of part.tests.filter(test => test.startsWith('--')))
  for (const name of pattern.slice(pattern.indexOf('/') + 1, -2).split(/\|(?![^(]*\))/))
    if (!sources.some(source => new RegExp(name.replace(/^on .*/, 'on ')).test(source)))
      throw new Error(`No test of this part is called: ${name}`)
const command = 'node --test --test-isolation=none --test-reporter=./scripts/first-failure.ts'
const folder = mkdtempSync(join(tmpdir(), 'fatura-mutate-'))
const [config, template] = [join(folder, 'stryker.json'), join(folder, 'fatura.db')]
await migrateStore(`sqlite:${template}`)
const settings = {
  testRunner: 'command',
  commandRunner: { command: [command, ...part.tests].join(' ') },
  mutate: part.files,
  concurrency: 2,
  // For a machine that others use, too: what hangs is told from what is slow.
  timeoutMS: 8_000,
  timeoutFactor: 2,
  reporters: ['clear-text'],
  tsconfigFile: 'none',
  disableTypeChecks: false,
  ignorePatterns: ['bench', 'docs'],
  buildCommand: 'ln -s ../tools/node_modules test/node_modules',
}
writeFileSync(config, JSON.stringify(settings))
process.exitCode =
  spawnSync('npx', ['--yes', '-p', '@stryker-mutator/core@10', 'stryker', 'run', config], {
    stdio: 'inherit',
    env: { ...process.env, TEST_SQLITE_TEMPLATE: template },
  }).status ?? 1
