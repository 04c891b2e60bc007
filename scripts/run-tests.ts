/** Runs every test, the longest files first: none of them is then left alone at the end, while a core has nothing to do. */
import { globSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'

const root = join(import.meta.dirname, '..')

/** In the order of how long they take. One that is missing here costs a little time, and nothing else. */
const longest = [
  ...['store/sqlite-locks', 'sync/documents', 'doctor/doctor', 'http/shutdown', 'store/postgres-faults'],
  ...[
    'cli/sync',
    'invoicexpress/pdf',
    'http/rude-clients',
    'sync/sync',
    'sync/document-rounds',
    'cli/documents',
  ],
  ...['cli/demo', 'stripe/payment-platform', 'http/fair-downloads', 'stripe/webhook', 'http/isolation'],
  ...[
    'browser/page-access',
    'browser/page-states',
    'project/package',
    'sync/bad-upstream',
    'sync/document-pace',
  ],
  ...['sync/histories', 'cli/import', 'cli/workers', 'metrics/metrics', 'cli/serve', 'export/export'],
].map(name => `test/${name}.test.ts`)

/** Of the whole project, unless some are named. */
function listFiles(): string[] {
  const named = process.argv.slice(2)
  if (named.length > 0) return named.map(file => resolve(file))
  const found = globSync('test/**/*.test.ts', { cwd: root }).sort()
  const inOrder = [
    ...longest.filter(file => found.includes(file)),
    ...found.filter(file => !longest.includes(file)),
  ]
  return inOrder.map(file => join(root, file))
}

const options = {
  files: listFiles(),
  concurrency: 4,
  globalSetupPath: join(root, 'test/support/postgres-server.ts'),
}

run(options)
  .on('test:fail', ({ todo }) => {
    if (todo === undefined || todo === false) process.exitCode = 1
  })
  .compose(spec)
  .pipe(process.stdout)
