/** The recipes of CONTRIBUTING.md and docs/recipes.md: made-up changes that follow them pass the checks, and what they name is there. */
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { type CleanCopy, copyCheckout } from '../support/worlds/clean-copy.ts'
import { type MadeUpChange, madeUpChanges } from '../support/worlds/made-up-changes.ts'

const root = join(import.meta.dirname, '../..')
/** The text of each recipe, by its heading. */
const recipes = new Map(
  ['CONTRIBUTING.md', 'docs/recipes.md'].flatMap(page =>
    readFileSync(join(root, page), 'utf8')
      .split(/^(?=## )/m)
      .flatMap(part => part.split(/^(?=### )/m))
      .flatMap(text => {
        const [, name] = /^###? (An? .+)$/m.exec(text) ?? []
        return name === undefined ? [] : [[name, text] as const]
      }),
  ),
)

/** Recipes that are not tried here, each with its reason: what they name is looked for all the same. */
const notTried: Readonly<Record<string, string>> = {
  'A migration': 'the filter has one',
  'A route': 'its parts are those of an error code and of a filter',
  'A parameter': 'a filter is one',
  'An engine': 'is work of weeks',
  'A payment platform': 'is work of weeks',
  'A dependency': 'needs the network',
}

/** Names that stand for what is to be added. */
const placeholders = /000N|<|NAME|…|^currency$/

const codeIn = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)
const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter(path => existsSync(join(root, path)))

describe('the recipes for changes in the docs', { concurrency: 2 }, () => {
  it('are each tested here, or listed with a reason', () => {
    assert.deepEqual(
      [...recipes.keys()].sort(),
      [...Object.keys(madeUpChanges), ...Object.keys(notTried)].sort(),
    )
  })

  it('name existing files, scripts and symbols', () => {
    const sources = tracked.filter(path => /^(src|test|sandbox|scripts|bin)\/.*\.(ts|tsx|js|sql)$/.test(path))
    const words = new Set(
      [...sources, 'package.json'].flatMap(
        path => readFileSync(join(root, path), 'utf8').match(/[\w-]+/g) ?? [],
      ),
    )
    const names = new Set(tracked.flatMap(path => [path, basename(path), `${dirname(path)}/`, dirname(path)]))
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    for (const [name, text] of recipes)
      for (const code of codeIn(text).filter(code => !placeholders.test(code))) {
        const [, script] = /^npm run ([\w:]+)$/.exec(code) ?? []
        const isFile = /\.(ts|js|md|sql|json)$|\/$/.test(code)
        const isThere = isFile
          ? names.has(code) || tracked.some(path => path.startsWith(code) || path.includes(`/${code}`))
          : script !== undefined
            ? script in scripts
            : (code.match(/[\w-]+/g) ?? []).every(word => words.has(word))
        assert.ok(isThere, `"${name}" names ${code}`)
      }
  })

  it('name each file that must change', () => {
    for (const [name, { insertions, files }] of Object.entries<MadeUpChange>(madeUpChanges)) {
      const text = recipes.get(name) ?? ''
      const changed = [
        ...insertions.map(([file]) => file),
        ...Object.keys(files).filter(file => !isNewTest(file)),
      ]
      for (const file of changed) {
        const folder = `${dirname(file)}/`
        const isNamed = [file, `${folder}000N.sql`, `${folder}<verb-noun>.ts`].some(path =>
          text.includes(path),
        )
        assert.ok(isNamed || (file in files && text.includes(folder)), `"${name}" does not name ${file}`)
      }
    }
  })

  it('lead to correct types and passing tests on both engines', {
    timeout: 900_000,
  }, async t => {
    const copy = await copyCheckout(t)
    for (const change of Object.values<MadeUpChange>(madeUpChanges)) await make(copy.folder, change)
    const commands = Object.values<MadeUpChange>(madeUpChanges).flatMap(({ commands }) => commands)
    // What writes the API's description comes last, and once.
    const order = ['npm run functions', 'npm run tables', 'npm run openapi', 'npm run types']
    assert.deepEqual(
      new Set(commands.filter(command => command.startsWith('npm run'))),
      new Set(order.slice(0, 3)),
    )
    for (const command of order) await type(copy, command)
    assert.equal(await type(copy, 'npx fatura greet --greeting Viva'), 'Viva!\n')
    await runTests(t, copy)
  })
})

function isNewTest(file: string): boolean {
  return file.startsWith('test/') && file.endsWith('.test.ts')
}

async function make(folder: string, { insertions, files }: MadeUpChange): Promise<void> {
  for (const [file, place, text] of insertions) {
    const before = await readFile(join(folder, file), 'utf8')
    assert.equal(before.split(place).length, 2, `${file} has the place of a made-up change once: ${place}`)
    await writeFile(
      join(folder, file),
      before.replace(place, () => text + place),
    )
  }
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, file)), { recursive: true })
    await writeFile(join(folder, file), text)
  }
}

async function type(
  { folder, env }: CleanCopy,
  command: string,
  more: NodeJS.ProcessEnv = {},
): Promise<string> {
  const told = await promisify(execFile)('sh', ['-c', command], {
    cwd: folder,
    env: { ...env, ...more },
    maxBuffer: 1e8,
  }).catch(({ stdout, stderr }) => assert.fail(`${command}\n${stdout}\n${stderr}`))
  return told.stdout
}

/** Tests that the changes concern, in one process. */
const concerned = {
  'http/currency': ['a list is filtered by currency'],
  'http/frozen': ['the summary of a frozen customer'],
  'http/generated-requests': ['requests get no 5xx'],
  'http/openapi': ['openapi.json is the output', 'every error code is described'],
  'sync/disputes': ['disputes are read once a day'],
  'sync/schedule': ['has one question for each stream'],
  'store/counters': ['agree with the rows after any writes'],
  'cli/migrate': ['fatura migrate waits for another writer'],
  'store/migrations': ['functions.sql contains', 'is created by the first run'],
  'store/postgres': ['a second wall'],
  'store/released': ['answers as before after its migration'],
  'export/export': ['writes exactly the invoices', 'printed number and ATCUD'],
  'sdk/held-against-the-document': ['the client asks every operation', 'fields and error codes'],
  'cli/help': ['"fatura (greet|serve|doctor|export)"', 'is tested for every command'],
  'project/docs': ['docs/(errors|api|configuration)', 'every default is a value', 'every file, folder'],
}

async function runTests(t: TestContext, copy: CleanCopy): Promise<void> {
  const imports = Object.keys(concerned).map(file => `import './test/${file}.test.ts'\n`)
  await writeFile(join(copy.folder, 'concerned.test.mjs'), imports.join(''))
  const patterns = Object.values(concerned).flat()
  const command = [
    'node --test --test-reporter=tap --test-global-setup=./test/support/databases/postgres-server.ts',
    ...patterns.map(pattern => `--test-name-pattern='${pattern}'`),
    'concerned.test.mjs',
  ]
  const output = await type(copy, command.join(' '), {
    TMPDIR: process.env.TMPDIR,
    TEST_POSTGRES_URL: process.env.TEST_POSTGRES_URL,
  })
  const passed = output.match(/^ *ok \d+ - .*$/gm) ?? []
  t.diagnostic(`${passed.length} tests and suites passed`)
  for (const pattern of patterns)
    assert.ok(
      passed.some(line => new RegExp(pattern).test(line)),
      `a test of ${pattern} ran`,
    )
}
