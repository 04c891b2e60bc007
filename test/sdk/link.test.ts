/** The helper that backends import: what it signs, and that it needs neither the service nor a package. */
import assert from 'node:assert/strict'
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { settings } from '../../src/cli/settings/settings.ts'
import { customerIdPattern, invoiceIdPattern } from '../../src/domain/invoice.ts'
import { createKeyId, linkAlgorithm, linkType } from '../../src/http/access/link-form.ts'
import { createLink, createLinkToken, type LinkKey } from '../../src/sdk/link.ts'

const root = new URL('../..', import.meta.url).pathname
const publicUrl = 'https://invoices.example.com'
const key = {
  ...generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }),
  kid: 'key_0123456789aB',
} as LinkKey
const options = { key, publicUrl, customer: 'cus_ana' }

/** The claims of the token, once its signature proved right with Node's own crypto. */
function readToken(token: string) {
  const [header = '', claims = '', signature = '', ...rest] = token.split('.')
  assert.deepEqual(rest, [])
  const { d, ...publicHalf } = key
  const publicKey = createPublicKey({ key: publicHalf as never, format: 'jwk' })
  const signed = Buffer.from(`${header}.${claims}`)
  assert.ok(verify(null, signed, publicKey, Buffer.from(signature, 'base64url')), 'the signature is right')
  assert.match(token, /^[\w.-]+$/, 'base64url without padding')
  return [header, claims].map(part => JSON.parse(Buffer.from(part, 'base64url').toString()))
}

describe('createLink', () => {
  it('returns the public address with a token in the fragment, valid for an hour', async t => {
    t.mock.timers.enable({ apis: ['Date'], now: 1_800_000_000_500 })
    const link = await createLink(options)
    const [address, token = ''] = link.split('/#t=')
    assert.equal(address, publicUrl)
    const [header, { iat, exp, ...claims }] = readToken(token)
    assert.deepEqual(header, { alg: 'EdDSA', typ: 'fatura-link+jwt', kid: 'key_0123456789aB' })
    assert.deepEqual(claims, { sub: 'cus_ana', aud: publicUrl })
    assert.deepEqual([iat, exp], [1_800_000_000, 1_800_003_600])
  })

  it('limits a link to an invoice and to the given time', async () => {
    const { token, expires_at } = await createLinkToken({ ...options, invoice: 'in_1', ttlSeconds: 86_400 })
    const [, { iat, exp, invoice }] = readToken(token)
    assert.equal(invoice, 'in_1')
    assert.equal(exp - iat, 86_400)
    assert.equal(expires_at, new Date(exp * 1_000).toISOString())
  })

  it('accepts the key as text, and the address in any spelling', async () => {
    const text = JSON.stringify({ ...key, alg: 'EdDSA', use: 'sig' })
    for (const [given, aud] of [
      ['https://Invoices.Example.com/', publicUrl],
      ['https://example.com//', 'https://example.com'],
      ['http://127.0.0.1:3000', 'http://127.0.0.1:3000'],
      ['https://facturação.example', 'https://xn--facturao-xza3b.example'],
    ] as const) {
      const link = await createLink({ ...options, key: `${text}\n`, publicUrl: given })
      assert.ok(link.startsWith(`${aud}/#t=`), link)
      assert.equal(readToken(link.split('#t=')[1] ?? '')[1].aud, aud)
    }
  })

  it('refuses invalid options by name, and never shows the key', async () => {
    const { d } = key
    const refused: [object, RegExp][] = [
      [{ key: '' }, /key/],
      [{ key: undefined }, /key/],
      [{ key: null }, /key/],
      [{ key: `${JSON.stringify(key)}x` }, /key/],
      [{ key: { ...key, kty: 'RSA' } }, /key/],
      [{ key: { ...key, kid: undefined } }, /key/],
      [{ key: { ...key, kid: 'ú' } }, /key/],
      [{ key: { ...key, d: undefined } }, /key/],
      [{ key: { ...key, d: d.slice(1) } }, /key/],
      [{ publicUrl: 'invoices.example.com' }, /publicUrl/],
      [{ publicUrl: 'ftp://example.com' }, /publicUrl/],
      [{ publicUrl: 'http://example.com' }, /publicUrl.*https/],
      [{ publicUrl: 'https://example.com/billing' }, /publicUrl.*path/],
      [{ publicUrl: 'https://example.com/?a=1' }, /publicUrl/],
      [{ publicUrl: 'https://example.com/#a' }, /publicUrl/],
      [{ publicUrl: 'https://user:secret@example.com' }, /publicUrl/],
      [{ customer: 'ana' }, /customer/],
      [{ customer: 'cus_' }, /customer/],
      [{ customer: 'cus_ana\n' }, /customer/],
      [{ customer: undefined }, /customer/],
      [{ invoice: 'cus_ana' }, /invoice/],
      [{ invoice: '' }, /invoice/],
      [{ ttlSeconds: 0 }, /ttlSeconds/],
      [{ ttlSeconds: 86_401 }, /ttlSeconds/],
      [{ ttlSeconds: 1.5 }, /ttlSeconds/],
      [{ ttlSeconds: '60' }, /ttlSeconds/],
    ]
    for (const [wrong, says] of refused)
      await assert.rejects(createLink({ ...options, ...wrong } as never), (error: Error) => {
        assert.ok(error instanceof TypeError, String(error))
        assert.match(error.message, says)
        assert.ok(!error.message.includes(d.slice(0, 10)))
        return true
      })
  })

  it('accepts the same IDs as the API', async () => {
    const code = await readFile(join(root, 'src/sdk/link.ts'), 'utf8')
    for (const pattern of [customerIdPattern, invoiceIdPattern]) assert.ok(code.includes(`/${pattern}/`))
  })

  it('uses the service’s address as in the setting PUBLIC_URL', async () => {
    for (const address of ['https://Example.com:443/', 'https://example.com//', 'http://[::1]:3000/']) {
      const link = await createLink({ ...options, publicUrl: address })
      assert.equal(link.split('/#t=')[0], settings.PUBLIC_URL.parse(address))
    }
    for (const wrong of [
      'http://example.com',
      'ftp://example.com',
      'https://a@example.com',
      'https://a/?b',
      'https://a/b',
    ])
      assert.throws(() => settings.PUBLIC_URL.parse(wrong))
  })

  it('signs tokens that the service accepts, with a key ID of fatura key', async () => {
    const kid = createKeyId()
    const { token } = await createLinkToken({ ...options, key: { ...key, kid } })
    const [header] = readToken(token)
    assert.deepEqual(header, { alg: linkAlgorithm, typ: linkType, kid })
  })
})
