/** Keys and links from the command line, and what a link opens at a running service. */
import assert from 'node:assert/strict'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { createLinkToken } from '../../src/sdk/link.ts'
import { assertOneLine, type Cli, createCli, eventually } from '../support/clients/cli.ts'
import { makeInvoice } from '../support/worlds/records.ts'
import { refusalOf } from '../support/worlds/settings.ts'

const publicUrl = 'https://billing.example.com'

async function addKey(cli: Cli, ...args: string[]) {
  const { code, stdout, stderr } = await cli.run(['key', 'add', '--create', ...args])
  assert.equal(code, 0, stderr)
  return { text: stdout.trim(), key: JSON.parse(stdout), stderr }
}

async function listKeys(cli: Cli) {
  const { stdout } = await cli.run(['key', 'list', '--json'])
  return stdout
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line))
}

describe('fatura key', { concurrency: 3 }, () => {
  it('add prints only the private key, and stores only the public key', async t => {
    const cli = await createCli(t)
    const { text, key, stderr } = await addKey(cli, 'shop')
    assert.deepEqual(Object.keys(key), ['kty', 'crv', 'alg', 'use', 'kid', 'x', 'd'])
    assert.deepEqual([key.kty, key.crv, key.alg, key.use], ['OKP', 'Ed25519', 'EdDSA', 'sig'])
    assert.match(key.kid, /^key_[0-9A-Za-z]{12}$/)
    assert.match(key.d, /^[\w-]{43}$/)
    assert.ok(!text.includes('\n'))
    assert.match(stderr, new RegExp(`^Key ${key.kid} .*every customer.*not shown again.*\n$`, 'm'))
    assert.ok(!stderr.includes(key.d))
    const files = await readdir(dirname(cli.database))
    const bytes = Buffer.concat(
      await Promise.all(files.map(file => readFile(join(dirname(cli.database), file)))),
    )
    assert.ok(bytes.includes(key.x) && !bytes.includes(key.d))
    assert.ok(!bytes.includes(Buffer.from(key.d, 'base64url')))
  })

  it('list shows the newest key first, and a second revoke keeps the time of the first', async t => {
    const cli = await createCli(t)
    await cli.load()
    const empty = await cli.run(['key', 'list'])
    assert.match(empty.stdout, /^[^\n]*fatura key add[^\n]*\n$/)
    const { key: first } = await addKey(cli, 'shop', '--customers', 'cus_ana, cus_rui,cus_ana')
    const { key: second } = await addKey(cli, 'desk')
    const { stdout } = await cli.run(['key', 'list'])
    const [head = '', ...rows] = stdout.trimEnd().split('\n')
    assert.match(head, /^ID +STATE +CREATED +MAY SIGN FOR +NAME$/)
    assert.match(rows[0] ?? '', new RegExp(`^${second.kid} +active +\\S+Z +every customer +desk$`))
    assert.match(rows[1] ?? '', new RegExp(`^${first.kid} +active +\\S+Z +cus_ana, cus_rui +shop$`))
    const revoked = await cli.run(['key', 'revoke', first.kid])
    assert.deepEqual([revoked.code, revoked.stderr], [0, ''])
    assert.match(revoked.stdout, new RegExp(`^Revoked ${first.kid}\\..*\n$`))
    const [, { revoked_at }] = await listKeys(cli)
    assert.equal((await cli.run(['key', 'revoke', first.kid])).code, 0)
    assert.deepEqual(
      (await listKeys(cli)).map(key => [key.kid, key.state, key.customers, key.x, key.d, key.revoked_at]),
      [
        [second.kid, 'active', null, second.x, undefined, null],
        [first.kid, 'revoked', ['cus_ana', 'cus_rui'], first.x, undefined, revoked_at],
      ],
    )
  })

  it('refuses wrong arguments with one line of advice, and never shows a private key', async t => {
    const cli = await createCli(t)
    const { text, key } = await addKey(cli, 'shop')
    const refused: [string[], ...RegExp[]][] = [
      [['add', ''], /name/],
      [['add', 'a\nb'], /name/],
      [['add', text], /name/],
      [['add', 'shop', '--customers', 'ana'], /--customers/, /cus_/, /'ana'/],
      [['add', 'shop', '--customers', 'cus_ana,'], /--customers/, /''/],
      [['revoke', 'key_doesnotexist'], /There is no key key_doesnotexist/, /key list/],
      [['revoke', text], /not the ID of a key/, /key list/],
      // One key in 64 begins with a dash.
      [['revoke', '--', `-${key.d}`], /not the ID of a key/],
    ]
    for (const [args, ...patterns] of refused) {
      const outcome = await cli.run(['key', ...args])
      assertOneLine(outcome, ...patterns)
      assert.ok(!outcome.stderr.includes(key.d.slice(0, 12)), args.join(' '))
    }
    assert.equal((await listKeys(cli)).length, 1)
  })
})

describe('fatura link', { concurrency: 3 }, () => {
  it('prints only the link, signed with CUSTOMER_LINK_KEY or a key file, for the given time', async t => {
    const cli = await createCli(t)
    const { text, key } = await addKey(cli, 'shop')
    await writeFile(join(cli.folder, 'key.json'), `${text}\n`)
    const env = { CUSTOMER_LINK_KEY: text, PUBLIC_URL: `${publicUrl}/` }
    const cases: [string[], Record<string, string>, ttl: number, invoice?: string][] = [
      [[], env, 3_600],
      [['--ttl', '90s', '--invoice', 'in_1'], env, 90, 'in_1'],
      [['--ttl', '24h', '--key', 'key.json', '--public-url', publicUrl], {}, 86_400],
    ]
    for (const [args, given, ttl, invoice] of cases) {
      const outcome = await cli.run(['link', '--customer', 'cus_ana', ...args], { env: given })
      assert.deepEqual([outcome.code, outcome.stderr], [0, ''])
      const [, claims = ''] =
        /^https:\/\/billing\.example\.com\/#t=[\w-]+\.([\w-]+)\.[\w-]+\n$/.exec(outcome.stdout) ?? []
      const { sub, aud, iat, exp, ...rest } = JSON.parse(Buffer.from(claims, 'base64url').toString())
      assert.deepEqual([sub, aud, exp - iat], ['cus_ana', publicUrl, ttl])
      assert.deepEqual(rest, invoice === undefined ? {} : { invoice })
      assert.ok(!outcome.stdout.includes(key.d))
    }
  })

  it('refuses arguments that give no valid link, with one line of advice', async t => {
    const cli = await createCli(t)
    const { text, key } = await addKey(cli, 'shop')
    await writeFile(join(cli.folder, 'bad.json'), text.replace('"d"', '"e"'))
    const env = { CUSTOMER_LINK_KEY: text, PUBLIC_URL: publicUrl }
    const refused: [string[], Record<string, string>, ...RegExp[]][] = [
      [['--customer', 'ana'], env, /--customer/, /cus_/, /'ana'/],
      [['--customer', 'cus_ana', '--invoice', 'cus_ana'], env, /--invoice/, /in_/],
      [['--customer', 'cus_ana', '--ttl', '25h'], env, /--ttl/, /24h/, /'25h'/],
      [['--customer', 'cus_ana', '--ttl', '0s'], env, /--ttl/],
      [['--customer', 'cus_ana', '--ttl', '60'], env, /--ttl/],
      [['--customer', 'cus_ana'], { ...env, CUSTOMER_LINK_KEY: '' }, /CUSTOMER_LINK_KEY/, /key add/, /--key/],
      [
        ['--customer', 'cus_ana'],
        { ...env, CUSTOMER_LINK_KEY: text.slice(0, -3) },
        /CUSTOMER_LINK_KEY/,
        /key add/,
      ],
      [['--customer', 'cus_ana'], { ...env, PUBLIC_URL: '' }, /PUBLIC_URL/, /https:/],
      [['--customer', 'cus_ana', '--key', 'none.json'], env, /'none\.json'/, /ENOENT/, /key add/],
      [['--customer', 'cus_ana', '--key', 'bad.json'], env, /'bad\.json'/, /key add/],
      [['--customer', 'cus_ana', '--key', text], env, /--key must name a file/, /CUSTOMER_LINK_KEY/],
    ]
    for (const [args, given, ...patterns] of refused) {
      const outcome = await cli.run(['link', ...args], { env: given })
      assertOneLine(outcome, ...patterns)
      assert.ok(!outcome.stderr.includes(key.d.slice(0, 12)), args.join(' '))
    }
    assert.match(refusalOf('PUBLIC_URL', 'http://a.example'), /^PUBLIC_URL .*https/)
    assert.equal((await cli.run(['link'], { env })).code, 2)

    // A link or a key in the wrong place is not repeated.
    const { token } = await createLinkToken({ key, publicUrl, customer: 'cus_ana' })
    for (const args of [
      ['link', '--customer', `${publicUrl}/#t=${token}`],
      ['link', '--customer', 'cus_ana', '--ttl', text],
      ['key', 'add', 'shop', '--customers', token],
    ]) {
      const { code, stdout, stderr } = await cli.run(args, { env })
      assert.notEqual(code, 0)
      for (const secret of [key.d, ...token.split('.').slice(1)])
        for (let from = 0; from + 12 <= secret.length; from += 4)
          assert.ok(!(stdout + stderr).includes(secret.slice(from, from + 12)), `${args}: ${stderr}`)
    }
  })

  it('prints a link that opens its customer’s invoices or one invoice until the key is revoked', async t => {
    const cli = await createCli(t)
    await cli.load(
      makeInvoice({ id: 'in_1' }),
      makeInvoice({ id: 'in_2' }),
      makeInvoice({ id: 'in_3', customer_id: 'cus_rui' }),
    )
    const { text, key } = await addKey(cli, 'shop', '--customers', 'cus_ana')
    const { stdout } = await cli.run(['link', '--customer', 'cus_ana'], {
      env: { CUSTOMER_LINK_KEY: text, PUBLIC_URL: publicUrl },
    })
    const token = stdout.trim().split('#t=')[1]
    const mint = async (customer: string, invoice?: string) =>
      (await createLinkToken({ key, publicUrl, customer, invoice })).token
    const api = await cli.serve(['--rate-limit', 'off'], { env: { PUBLIC_URL: publicUrl } })
    const ask = async (path: string, given: string | undefined) =>
      (await api.get(`/api/v1/client/${path}`, given)).status
    assert.equal(await ask('cus_ana/invoices', token), 200)
    assert.equal(await ask('cus_ana/invoice/in_2', token), 200)
    assert.equal(await ask('cus_rui/invoices', token), 403)
    const one = await mint('cus_ana', 'in_1')
    assert.equal(await ask('cus_ana/invoice/in_1', one), 200)
    assert.equal(await ask('cus_ana/invoice/in_2', one), 403)
    assert.equal(await ask('cus_ana/invoices', one), 403)
    assert.equal(await ask('cus_rui/invoices', await mint('cus_rui')), 401, 'the key may not sign for it')

    const { code, stderr } = await cli.run(['key', 'revoke', key.kid])
    assert.equal(code, 0, stderr)
    await eventually('it is refused', async () => (await ask('cus_ana/invoices', token)) === 401)
    assert.equal(await ask('cus_ana/invoice/in_1', one), 401)
    assert.equal(await ask('cus_ana/invoices', await mint('cus_ana')), 401, 'one made after it')
  })
})
