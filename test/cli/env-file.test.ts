/** A file .env in the working directory. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { findWrongLine } from '../../src/cli/settings/environment.ts'
import { assertOneLine, createCli, unreadEnvFile, unwrapped } from '../support/clients/cli.ts'

async function createWithFile(t: TestContext, text: string) {
  const cli = await createCli(t)
  await writeFile(join(cli.folder, '.env'), text)
  const hasStore = (name: string) => existsSync(join(cli.folder, name))
  return { ...cli, hasStore }
}

describe('the file .env', { concurrency: 3 }, () => {
  it('gives the settings that neither a flag nor the environment gives', async t => {
    const cli = await createWithFile(t, 'DATABASE_URL=sqlite:file.db\n')
    const migrate = async (args: string[], env: Record<string, string>) => {
      const { code, stderr } = await cli.run(['migrate', ...args], { env })
      assert.deepEqual([code, stderr], [0, ''])
    }
    await migrate(['--database-url', 'sqlite:flag.db'], { DATABASE_URL: 'sqlite:real.db' })
    assert.deepEqual(['flag.db', 'real.db', 'file.db'].map(cli.hasStore), [true, false, false])
    await migrate([], { DATABASE_URL: 'sqlite:real.db' })
    assert.deepEqual(['real.db', 'file.db'].map(cli.hasStore), [true, false])
    await migrate([], { DATABASE_URL: '' })
    assert.deepEqual([existsSync(cli.database), cli.hasStore('file.db')], [true, false], 'empty wins too')
    await migrate([], {})
    assert.ok(cli.hasStore('file.db'))
  })

  it('may have comments, empty lines, quotes, export, a byte order mark and CRLF', async t => {
    const lines = [
      '\uFEFF# where the store is',
      '',
      '  export DATABASE_URL = "sqlite:a #b.db" # in quotes',
      "OTHER='of\ntwo lines'",
      'EMPTY=',
      '#',
      'LOG_LEVEL=error # as in production',
      'a.b-c=1',
    ]
    const cli = await createWithFile(t, lines.join('\r\n'))
    const { code, stderr } = await cli.run(['migrate'])
    assert.equal(code, 0)
    assert.equal(
      stderr,
      'The file .env has names that are not settings of Fatura. They are ignored:\nEMPTY, OTHER, a.b-c.\n',
    )
    assert.ok(cli.hasStore('a #b.db'))
  })

  it('leads to one warning for an unknown setting, which does not show the value', async t => {
    const cli = await createWithFile(t, 'STRIPE_KEY=canary\nPGPASSWORD=canary\nPORT=0\n')
    const program = cli.start(['serve', '--migrate'])
    await program.waitFor(/"msg":"listening"/)
    await program.stop()
    assert.equal(
      program.stderr,
      'The file .env has names that are not settings of Fatura. They are ignored:\nSTRIPE_KEY (did you mean STRIPE_API_KEY?).\n',
    )
    const { stderr } = await cli.run(['doctor', '--sample', '0', '--json'])
    assert.equal(stderr, program.stderr)
  })

  it('may contain secret keys, which no message shows', async t => {
    const keys =
      'STRIPE_API_KEY=rk_test_canary\nINVOICEXPRESS_API_KEY=canaryIx\nINVOICEXPRESS_ACCOUNT=canary\n'
    const base = 'STRIPE_API_BASE=http://127.0.0.1:9\nINVOICEXPRESS_API_BASE=http://127.0.0.1:9\n'
    const cli = await createWithFile(t, keys + base)
    const { stdout, stderr } = await cli.run(['doctor', '--sample', '0'])
    assert.match(unwrapped(stdout), /ok {4}Settings +well-formed: STRIPE_API_KEY, .*INVOICEXPRESS_API_KEY/)
    assert.doesNotMatch(stdout + stderr, /canary/)
    await writeFile(join(cli.folder, '.env'), 'STRIPE_API_KEY=canary\n')
    const wrong = await cli.run(['sync', '--once'])
    assertOneLine(wrong, /STRIPE_API_KEY must be a key that begins with sk_ or rk_/)
    assert.doesNotMatch(wrong.stderr, /canary/)
  })

  const malformed: [text: string, line: number][] = [
    ['canary', 1],
    ['A=1\n\ncanary line\n', 3],
    ['A=1\nSTRIPE KEY=canary\n', 2],
    ['A="canary\nB=1\n', 1],
    ["A=1\nB='x' canary\n", 2],
    ['=canary', 1],
    ['A: canary\n', 1],
    ['# a comment\nA=can\0ary\n', 2],
  ]
  it('is reported with the line number when it is malformed', () => {
    for (const [text, line] of malformed) assert.equal(findWrongLine(text), line, JSON.stringify(text))
  })

  for (const [text, line] of malformed.slice(-2))
    it(`stops the command with one line when it contains ${JSON.stringify(text)}`, async t => {
      const cli = await createWithFile(t, text)
      const outcome = await cli.run(['migrate'])
      assertOneLine(outcome, new RegExp(`^fatura: Line ${line} of the file \\.env must be NAME=value`))
      assert.doesNotMatch(outcome.stderr, /can/)
      assert.ok(!existsSync(cli.database))
    })

  it('stops every command that reads settings, with that command’s exit code, when it is malformed', async t => {
    const cli = await createWithFile(t, 'canary')
    for (const command of ['serve', 'up', 'sync', 'status', 'doctor', 'copy sqlite:a.db sqlite:b.db'])
      assertOneLine(await cli.run(command.split(' ')), /Line 1 of the file \.env/)
    const { code, stderr } = await cli.run(['reconcile'])
    assert.equal(code, 2)
    assert.match(stderr, /^fatura: Line 1 of the file \.env [^\n]+\n$/)
  })

  it('stops the command with one line when it is a folder', async t => {
    const cli = await createCli(t)
    await mkdir(join(cli.folder, '.env'))
    assertOneLine(await cli.run(['migrate']), /\.env is a folder/)
  })

  it('stops the command with one line when it is not readable', {
    skip: process.getuid?.() === 0 && 'root may read every file',
  }, async t => {
    const cli = await createWithFile(t, 'PORT=0\n')
    await chmod(join(cli.folder, '.env'), 0)
    assertOneLine(await cli.run(['migrate']), /The file \.env cannot be read \(EACCES\)/)
  })

  // Nor by demo, of which this is seen in demo.test.ts.
  it('is not read by the commands sandbox and openapi, which need no keys', async t => {
    const cli = await createWithFile(t, unreadEnvFile)
    assert.equal((await cli.run(['openapi'])).code, 0)
    const sandbox = cli.start(['sandbox', '--port', '0', '--invoices', '3'])
    await sandbox.waitFor(/Ctrl-C stops both/)
    assert.equal((await sandbox.stop('SIGINT')).code, 0)
  })
})
