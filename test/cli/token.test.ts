import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { readExpiry, readId } from '../../src/cli/commands/token.ts'
import { CliError } from '../../src/cli/terminal/cli-error.ts'
import { createToken } from '../../src/http/access/token.ts'
import { openOperatorStore } from '../../src/store/engines.ts'
import type { StoredToken } from '../../src/store/store.ts'
import { assertOneLine, type Cli, createCli, eventually } from '../support/clients/cli.ts'
import { makeInvoice } from '../support/worlds/records.ts'

const hour = 3_600_000
const day = 24 * hour

async function make(cli: Cli, ...args: string[]): Promise<string> {
  const scope = args.length === 0 ? ['--all-customers'] : args
  const { code, stdout, stderr } = await cli.run(['token', 'create', '--create', ...scope])
  assert.equal(code, 0, stderr)
  return stdout.trim()
}

/** The stored rows, for tests that are not about `list`. */
async function readStored(cli: Cli): Promise<StoredToken[]> {
  const store = await openOperatorStore(`sqlite:${cli.database}`)
  try {
    return await store.listTokens()
  } finally {
    await store.close()
  }
}

describe('fatura token', { concurrency: 3 }, () => {
  it('create prints only the token on standard output, and its ID separately', async t => {
    const cli = await createCli(t)
    const { code, stdout, stderr } = await cli.run(['token', 'create', '--create', '--customer', 'cus_ana'])
    assert.equal(code, 0)
    assert.match(stdout, /^fat_[0-9A-Za-z]{48}\n$/)
    assert.ok(stderr.includes(stdout.slice(0, 16)), 'its id is told')
    assert.ok(stderr.includes('cus_ana'), 'its scope is told')
    assert.ok(!stderr.includes(stdout.slice(16, 46)), 'its secret is not')
  })

  it('create warns of customers that the store does not have, and still creates the token', async t => {
    const cli = await createCli(t)
    await cli.load(makeInvoice({ customer_id: 'cus_ana' }))
    const known = await cli.run(['token', 'create', '--customer', 'cus_ana'])
    assert.match(known.stderr, /^Token fat_.{12} may read cus_ana\. .*\n$/)
    const ids = ['ana', 'rui', 'eva', 'gil', 'ivo', 'leo', 'zoe'].flatMap(name => [
      '--customer',
      `cus_${name}`,
    ])
    const { code, stdout, stderr } = await cli.run(['token', 'create', ...ids])
    assert.equal(code, 0)
    assert.match(stdout, /^fat_/)
    assert.match(
      stderr,
      /^The store holds no invoice of cus_rui, cus_eva, cus_gil, cus_ivo, cus_leo and 1 more\. Check the ID/m,
    )
  })

  it('creates a missing store only with --create', async t => {
    const cli = await createCli(t)
    for (const args of [
      ['token', 'create', '--all-customers'],
      ['token', 'list'],
      ['token', 'revoke', 'fat_CYZ1GxwVaLm7'],
      ['key', 'add', 'shop'],
      ['key', 'list'],
    ])
      assertOneLine(await cli.run(args), /There is no store at sqlite:data\/fatura\.db/, /--create/)
    assert.ok(!existsSync(cli.database))
    const { code, stderr } = await cli.run(['key', 'add', 'shop', '--create'])
    assert.equal(code, 0)
    assert.match(stderr, /^There was no store\. sqlite:data\/fatura\.db was created\.$/m)
    assert.ok(existsSync(cli.database))
  })

  it('create refuses missing, contradictory or invalid customers, and creates no token', async t => {
    const cli = await createCli(t)
    const refused: [string[], ...RegExp[]][] = [
      [[], /--customer/, /--all-customers/],
      [['--customer', 'cus_ana', '--all-customers'], /--customer/, /--all-customers/, /not both/],
      [['--customer', 'ana'], /--customer/, /cus_/, /'ana'/],
      [['--customer', 'cus_ana', '--customer', 'cus_'], /--customer/, /'cus_'/],
      [['--customer', 'cus_ana,cus_rui'], /--customer/, /'cus_ana,cus_rui'/],
    ]
    for (const [args, ...patterns] of refused)
      assertOneLine(await cli.run(['token', 'create', ...args]), ...patterns)
    assert.ok(!existsSync(cli.database))
  })

  it('create refuses an --expires that is neither a number with h or d nor never', async t => {
    const cli = await createCli(t)
    const says = /^--expires must .*90d, or never, not '(.*)'\.$/
    for (const expires of ['90', '0d', '1w', ''])
      assert.throws(
        () => readExpiry(expires, Date.now()),
        (error: CliError) => error instanceof CliError && says.exec(error.message)?.[1] === expires,
      )
    assertOneLine(
      await cli.run(['token', 'create', '--all-customers', '--expires=']),
      /--expires/,
      /90d/,
      /never/,
      /''/,
    )
  })

  it('create makes a token for 90 days, or for the time of --expires', async t => {
    const cli = await createCli(t)
    const lives: [string[], number | null][] = [
      [[], 90 * day],
      [['--expires', '12h'], 12 * hour],
      [['--expires', 'never'], null],
    ]
    const began = Date.now()
    for (const [args, life] of lives) {
      const token = await make(cli, '--all-customers', '--name', String(life), ...args)
      assert.match(token, /^fat_/)
    }
    const listed = await readList(cli.run(['token', 'list', '--json']))
    assert.equal(listed.length, lives.length)
    for (const [, life] of lives) {
      const token = listed.find(({ name }) => name === String(life))
      assert.ok(token !== undefined)
      const created = Date.parse(token.created_at)
      assert.ok(created >= began && created <= Date.now())
      assert.equal(token.expires_at, life === null ? null : new Date(created + life).toISOString())
    }
  })

  it('list shows ID, state, expiry, scope and name, newest first, and no token or hash', async t => {
    const cli = await createCli(t)
    const first = await make(cli, '--customer', 'cus_ana', '--customer', 'cus_rui', '--name', 'portal')
    const second = await make(cli, '--all-customers', '--name', 'accountant', '--expires', 'never')
    assert.notEqual(first.slice(4, 16), second.slice(4, 16), 'no two have one id')
    assert.notEqual(first.slice(16, 46), second.slice(16, 46), 'nor one secret')
    const table = await cli.run(['token', 'list'])
    const json = await cli.run(['token', 'list', '--json'])
    assert.equal(table.code, 0)
    assert.equal(json.code, 0)

    const [head = '', ...rows] = table.stdout.trimEnd().split('\n')
    assert.match(head, /^ID +STATE +EXPIRES +MAY READ +NAME$/)
    assert.equal(rows.length, 2)
    assert.match(
      rows[0] ?? '',
      new RegExp(`^${second.slice(0, 16)} +active +never +every customer +accountant$`),
    )
    assert.match(
      rows[1] ?? '',
      new RegExp(`^${first.slice(0, 16)} +active +\\d{4}-\\d\\d-\\d\\dT\\S+Z +cus_ana, cus_rui +portal$`),
    )

    const listed = await readList(Promise.resolve(json))
    assert.deepEqual(
      listed.map(({ id, name, customers, state, revoked_at }) => [id, name, customers, state, revoked_at]),
      [
        [second.slice(0, 16), 'accountant', null, 'active', null],
        [first.slice(0, 16), 'portal', ['cus_ana', 'cus_rui'], 'active', null],
      ],
    )
    for (const output of [table.stdout, json.stdout, table.stderr, json.stderr]) {
      for (const token of [first, second]) assert.ok(!output.includes(token.slice(16, 46)))
      assert.doesNotMatch(output, /hash|[0-9a-f]{64}/)
    }
  })

  it('list of an empty store explains how to create a token, and prints nothing with --json', async t => {
    const cli = await createCli(t)
    await cli.load()
    const { code, stdout } = await cli.run(['token', 'list'])
    assert.equal(code, 0)
    assert.match(stdout, /^[^\n]*fatura token create[^\n]*\n$/)
    assert.equal((await cli.run(['token', 'list', '--json'])).stdout, '')
  })

  it('revoke ends one token, keeps its first revocation time, and leaves other tokens valid', async t => {
    const cli = await createCli(t)
    const ended = (await cli.createToken()).slice(0, 16)
    const kept = (await cli.createToken()).slice(0, 16)
    const revoked = await cli.run(['token', 'revoke', ended])
    assert.equal(revoked.code, 0)
    assert.match(revoked.stdout, new RegExp(`^Revoked ${ended}\\b.*\n$`))
    const stored = async () => (await readStored(cli)).map(({ id, revoked_at }) => [id, revoked_at])
    const first = await stored()
    assert.equal((await cli.run(['token', 'revoke', ended])).code, 0)
    assert.deepEqual(await stored(), first)
    const listed = await readList(cli.run(['token', 'list', '--json']))
    assert.equal(listed.find(({ id }) => id === kept)?.state, 'active')
    const token = listed.find(({ id }) => id === ended)
    assert.equal(token?.state, 'revoked')
    assert.equal(Date.parse(token.revoked_at ?? ''), new Map(first as [string, number][]).get(ended))
    assert.match((await cli.run(['token', 'list'])).stdout, new RegExp(`${ended} +revoked `))
  })

  it('revoke accepts a whole token, and shows only its ID', async t => {
    const cli = await createCli(t)
    const token = await make(cli, '--all-customers', '--name', 'ended')
    const kept = await make(cli, '--all-customers', '--name', 'kept')
    const { code, stdout, stderr } = await cli.run(['token', 'revoke', ` ${token}\n`])
    assert.deepEqual([code, stderr], [0, ''])
    assert.match(stdout, new RegExp(`^Revoked ${token.slice(0, 16)}\\..*\n$`))
    assertHidden(stdout, token)
    const listed = await readList(cli.run(['token', 'list', '--json']))
    assert.deepEqual(
      listed.map(({ id, state }) => [id, state]),
      [
        [kept.slice(0, 16), 'active'],
        [token.slice(0, 16), 'revoked'],
      ],
    )
  })

  it('revoke fails for an unknown or mistyped token, and does not show the token', async t => {
    const cli = await createCli(t)
    const token = await cli.createToken()
    const unknown = createToken().token
    const refused = await cli.run(['token', 'revoke', unknown])
    assertOneLine(refused, new RegExp(unknown.slice(0, 16)), /token list/)
    assertHidden(refused.stderr, unknown)
    const last = token.endsWith('a') ? 'b' : 'a'
    for (const wrong of [token.slice(0, -1), token.slice(0, -1) + last]) {
      const outcome = await cli.run(['token', 'revoke', wrong])
      assertOneLine(outcome, /not a token and not the ID/, /token list/)
      assertHidden(outcome.stderr, token)
    }
    for (const wrong of [
      token.slice(0, 30),
      token.slice(1),
      token.slice(16),
      `fat_${token.slice(5)}`,
      `fat-${token.slice(4)}`,
      token.toUpperCase(),
      `${token}${token}`,
      `Bearer ${token}`,
    ])
      assert.throws(
        () => readId(wrong),
        (error: CliError) => {
          assertHidden(error.message, token)
          return error instanceof CliError && /not a token and not the ID.*token list/.test(error.message)
        },
      )
    assert.deepEqual(
      (await readStored(cli)).map(({ id, revoked_at }) => [id, revoked_at]),
      [[token.slice(0, 16), null]],
    )
  })

  it('no error message shows a token that is given in a wrong place', async t => {
    const cli = await createCli(t)
    const token = await cli.createToken()
    const places: [given: string, ...place: string[]][] = [
      [token, 'token', 'list'],
      [token.slice(3), 'token', 'list'],
      [token, 'token'],
      [`x=${token}`],
      [token, 'token', 'revoke', 'fat_doesnotexist'],
      [`--${token}`, 'token', 'revoke'],
      [token, 'token', 'create', '--customer'],
      [token, 'token', 'create', '--all-customers', '--expires'],
      [token, 'token', 'create', '--all-customers', '--name'],
      [token.slice(3), 'serve', '--port'],
      [token, 'import'],
    ]
    for (const [given, ...place] of places) {
      const { code, stdout, stderr } = await cli.run([...place, given])
      assert.notEqual(code, 0, place.join(' '))
      assert.notEqual(stderr, '')
      assertHidden(stdout + stderr, token)
    }
    assert.equal((await readStored(cli)).length, 1, 'and none is made with one for its name')
  })

  it('revoke fails for an unknown ID, and says where IDs are listed', async t => {
    const cli = await createCli(t)
    await cli.createToken()
    assertOneLine(await cli.run(['token', 'revoke', 'fat_doesnotexist']), /fat_doesnotexist/, /token list/)
  })

  it('with a running service', async t => {
    const cli = await createCli(t)
    const both = await make(cli, '--customer', 'cus_ana', '--customer', 'cus_rui')
    const all = await make(cli)
    const api = await cli.serve(['--rate-limit', 'off'])
    const ask = (customer: string, token: string) => api.get(`/api/v1/client/${customer}/invoices`, token)

    await t.test('a token reads only its own customers', async () => {
      assert.equal((await ask('cus_ana', both)).status, 200)
      assert.equal((await ask('cus_rui', both)).status, 200)
      assert.equal((await ask('cus_eva', both)).status, 403)
      assert.equal((await ask('cus_eva', all)).status, 200)
    })

    // While a process holds the store open, the journal beside the database is there too.
    await t.test('only a hash of the token is stored', async () => {
      const folder = dirname(cli.database)
      const files = await readdir(folder)
      assert.ok(files.includes('fatura.db'))
      const bytes = Buffer.concat(await Promise.all(files.map(file => readFile(join(folder, file)))))
      for (const token of [both, all]) {
        assert.ok(bytes.includes(token.slice(0, 16)), 'the id is there')
        assert.ok(!bytes.includes(token.slice(16)), 'the secret and checksum are not')
        assert.ok(!bytes.includes(token.slice(16, 46)), 'the secret is not')
      }
    })

    await t.test('a revoked token is refused', async () => {
      assert.equal((await ask('cus_ana', all)).status, 200)
      const { code, stderr } = await cli.run(['token', 'revoke', all.slice(0, 16)])
      assert.equal(code, 0, stderr)
      // Asked all the while, so that the process has no reason to look the token up again.
      await eventually('it is refused', async () => (await ask('cus_ana', all)).status === 401)
      assert.equal((await ask('cus_ana', all)).json.error.code, 'invalid_token')
    })
  })
})

/** Not even a third of the secret is there. */
function assertHidden(text: string, token: string): void {
  for (let from = 16; from < 40; from++)
    assert.ok(
      !text.toLowerCase().includes(token.slice(from, from + 10).toLowerCase()),
      `from ${from}: ${text.length} characters`,
    )
}

interface ListedToken {
  id: string
  name: string
  customers: string[] | null
  created_at: string
  expires_at: string | null
  revoked_at: string | null
  state: string
}

async function readList(run: Promise<{ stdout: string }>): Promise<ListedToken[]> {
  const { stdout } = await run
  return stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
}
