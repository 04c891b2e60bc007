import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { describe, it } from 'node:test'
import manifest from '../../package.json' with { type: 'json' }
import { listCommands } from '../../scripts/public-names.ts'
import { settingNames } from '../../src/cli/settings/settings.ts'
import { assertOneLine, createCli } from '../support/clients/cli.ts'

const serving = [
  ['--host', 'HOST'],
  ['--port', 'PORT'],
  ['--rate-limit', 'RATE_LIMIT'],
  ['--log-level', 'LOG_LEVEL'],
]
const storing = [['--database-url', 'DATABASE_URL']]

/** Every command, and what its help must speak of: options, the variables behind them, arguments, subcommands. */
const commands: [command: string, mentions: string[]][] = [
  ['', ['demo', 'serve', 'reconcile', 'explain', 'import', 'token', 'migrate', 'openapi', '--version']],
  ['demo', serving.flat()],
  [
    'serve',
    [...serving.flat(), ...storing.flat(), '--migrate', '--reuse-port', 'REUSE_PORT', 'SHUTDOWN_DELAY'],
  ],
  ['import', [...storing.flat(), '<file>', '--skip-invalid', 'standard input']],
  [
    'reconcile',
    [...storing.flat(), '--customer', '--from', '--to', '--format', 'csv', 'exit code', 'LINK_IGNORE_ZERO'],
  ],
  ['report', ['vat']],
  ['report vat', [...storing.flat(), '--month', '--timezone', '--all', 'csv-pt', 'exit code']],
  ['explain', [...storing.flat(), '<name>', '--json', 'DOCUMENT_REFERENCE']],
  [
    'export',
    [
      ...storing.flat(),
      '--customer',
      '--ix-status',
      '--month',
      '--q',
      'csv-pt',
      '--lines',
      '--output',
      '--force',
      '--pdfs',
      'exit code',
    ],
  ],
  ['token', ['create', 'list', 'revoke']],
  [
    'token create',
    [...storing.flat(), '--customer', '--all-customers', '--name', '--expires', '90d', 'never'],
  ],
  ['token list', [...storing.flat(), '--json']],
  ['token revoke', [...storing.flat(), '<token>']],
  ['key', ['add', 'list', 'revoke']],
  ['key add', [...storing.flat(), '<name>', '--customers', 'JWK']],
  ['key list', [...storing.flat(), '--json']],
  ['key revoke', [...storing.flat(), '<id>']],
  ['webhook', ['add', 'list', 'pause', 'replay', 'remove']],
  ['webhook add', [...storing.flat(), '<url>', '--customers', 'OUTGOING_WEBHOOKS_PRIVATE']],
  ['webhook list', [...storing.flat(), '--json']],
  ['webhook pause', [...storing.flat(), '<id>']],
  ['webhook replay', [...storing.flat(), '<id>', '--from']],
  ['webhook remove', [...storing.flat(), '<id>']],
  ['link', ['--customer', '--invoice', '--ttl', '1h', '24h', '--key', 'CUSTOMER_LINK_KEY', '--public-url']],
  ['doctor', [...storing.flat(), '--sample', '--json', 'STRIPE_API_KEY', 'INVOICEXPRESS_API_KEY']],
  ['migrate', [...storing.flat(), '--json']],
  [
    'sync',
    [...storing.flat(), '--once', '--full', '--webhooks', 'INVOICEXPRESS_API_KEY', 'DOCUMENT_REFERENCE'],
  ],
  ['up', [...serving.flat(), ...storing.flat(), '--webhooks', 'DOCUMENT_REFERENCE']],
  ['status', [...storing.flat(), '--json']],
  ['health', ['--host', '--port', '--json', 'exit code']],
  ['account', ['show', 'change']],
  ['account show', [...storing.flat(), '--json']],
  ['account change', [...storing.flat(), '--confirm']],
  ['copy', ['<from>', '<to>', '--json']],
  ['sandbox', ['--seed', '--invoices', '--differences']],
  ['openapi', []],
]

describe('fatura --help', { concurrency: 3 }, () => {
  for (const [command, mentions] of commands)
    it(`for "${`fatura ${command}`.trim()}" names every argument, option and setting`, async t => {
      const cli = await createCli(t)
      const { code, stdout, stderr } = await cli.run([...words(command), '--help'])
      assert.equal(code, 0)
      assert.equal(stderr, '')
      assert.doesNotMatch(stdout, /default: (\[\]|false)/, 'nothing that says nothing')
      if (command !== '') assert.match(stdout, /\nExamples?:\n( {2}\S.*:\n {2})? {2}(\w+=\S+ )?fatura /)
      assert.deepEqual(
        stdout.split('\n').filter(line => line.length > 80),
        [],
        'a terminal of 80 columns shows it',
      )
      assert.ok(stdout.startsWith(`Usage: ${`fatura ${command}`.trim()} `), stdout)
      for (const mention of mentions) assert.ok(stdout.includes(mention), `${mention} in: ${stdout}`)
      if (command === 'doctor') assert.deepEqual(settingsIn(stdout), [...settingNames].sort())
      else assert.deepEqual(settingsIn(stdout), await documentedSettings(command))
    })

  it('is tested for every command', async () => {
    const all = await listCommands()
    assert.deepEqual(commands.map(([command]) => command).sort(), ['', ...all.map(({ name }) => name)].sort())
  })

  it('for import shows a valid invoice', async t => {
    const cli = await createCli(t)
    const { stdout } = await cli.run(['import', '--help'])
    const [example = ''] = /\{"id"[^}]*\}/.exec(stdout) ?? []
    const outcome = await cli.run(['import', '-'], { input: example.replaceAll('\n', ' ') })
    assert.equal(outcome.code, 0, outcome.stderr)
  })
})

describe('the fatura command line', { concurrency: 3 }, () => {
  const mistakes: [args: string, says: RegExp][] = [
    ['serv', /unknown command 'serv'.*serve/s],
    ['serve --prot 1', /unknown option '--prot'.*--port/s],
    ['serve --verbose', /unknown option '--verbose'/],
    ['token create --all', /unknown option '--all'/],
    ['token make', /unknown command 'make'/],
    ['import', /missing required argument 'file'/],
    ['serve --port', /'--port <port>' argument missing/],
    ['export --pdfs --help', /'--pdfs <folder>' has no value: '--help' is read as the next option/],
    ['export --output --force', /'--output <file>' has no value: '--force'/],
    ['token create --customer cus_a --customer --name', /'--customer <id>' has no value: '--name'/],
    ['migrate now', /too many arguments/],
  ]
  for (const [args, says] of mistakes)
    it(`answers "fatura ${args}" with exit code 2, the mistake and the way to the help`, async t => {
      const cli = await createCli(t)
      const { code, stdout, stderr } = await cli.run(words(args))
      assert.equal(code, 2)
      assert.equal(stdout, '')
      assert.match(stderr, says)
      assert.match(stderr, /--help/)
    })

  it('shows the help and fails when no command is given', async t => {
    const cli = await createCli(t)
    const { code, stdout, stderr } = await cli.run([])
    assert.equal(code, 2)
    assert.equal(stdout, '')
    assert.match(stderr, /^Usage: fatura /)
  })

  it('prints its version with --version', async t => {
    const cli = await createCli(t)
    const { code, stdout } = await cli.run(['--version'])
    assert.deepEqual([code, stdout], [0, `${manifest.version}\n`])
  })

  it('prints the committed OpenAPI document byte for byte with fatura openapi', async t => {
    const cli = await createCli(t)
    const { code, stdout, stderr } = await cli.run(['openapi'])
    assert.deepEqual([code, stderr], [0, ''])
    assert.match(JSON.parse(stdout).openapi, /^3\.1\./)
    const committed = await readFile(new URL('../../openapi.json', import.meta.url), 'utf8')
    assert.ok(stdout === committed, 'openapi.json is out of date: npm run openapi')
  })

  it('ends without an error when nobody reads its output any more', async t => {
    const cli = await createCli(t)
    const program = cli.start(['openapi'])
    program.child.stdout.destroy()
    const { code, stderr } = await program.exited
    assert.deepEqual([code, stderr], [0, ''])
  })

  const old = findOldNode()
  it('reports an old Node version in one line', {
    skip: old === undefined && 'there is no Node older than 24 on this machine',
  }, async t => {
    const cli = await createCli(t)
    assertOneLine(await cli.run(['demo'], { node: old ?? '' }), /Node 24/)
  })
})

/** The settings that a help text offers. */
function settingsIn(help: string): string[] {
  const found = help.matchAll(
    /\(env:\s+([A-Z_]+)(?:\s+or\s+\1_FILE)?,|^([A-Z_]+)(?: or \2_FILE)? \(environment only/gm,
  )
  return [...found].map(match => match[1] ?? match[2] ?? '').sort()
}

/** The settings that the command's section in docs/configuration.md lists after "Settings:", or all but those. */
async function documentedSettings(command: string): Promise<string[]> {
  const page = await readFile(new URL('../../docs/configuration.md', import.meta.url), 'utf8')
  const heading = new RegExp(`^\`fatura ${command}(\`| <)`)
  const section = page.split('\n### ').find(text => heading.test(text)) ?? ''
  const [, list = ''] = /^Settings: ([^.]*)\./m.exec(section) ?? []
  const named = [...list.matchAll(/`([A-Z_]+)`/g)].map(([, name = '']) => name)
  if (!list.startsWith('all but ')) return named.sort()
  return settingNames.filter(name => !named.includes(name)).sort()
}

function words(text: string): string[] {
  return text === '' ? [] : text.split(' ')
}

function findOldNode(): string | undefined {
  const folders = new Set([...(process.env.PATH ?? '').split(delimiter), '/usr/bin', '/usr/local/bin'])
  return [...folders].map(folder => join(folder, 'node')).find(isOldNode)
}

function isOldNode(path: string): boolean {
  try {
    const version = execFileSync(path, ['--version'], { encoding: 'utf8', stdio: 'pipe' })
    return Number(/^v(\d+)\./.exec(version)?.[1]) < 24
  } catch {
    return false
  }
}
