/** Allowed origins of a PDF, and the requests sent there. */
import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { after, before, describe, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { isAllowed } from '../../../src/sources/pdf/allowed-origins.ts'
import { fetchPdf } from '../../../src/sources/pdf/fetch-pdf.ts'
import { isPublicAddress, lookupPublic } from '../../../src/sources/pdf/public-address.ts'
import { SourceError } from '../../../src/sources/source.ts'
import { eventually } from '../../support/clients/cli.ts'
import {
  assertFails,
  get,
  makePdf,
  readAll,
  secret,
  startUpstream,
} from '../../support/upstreams/pdf-upstream.ts'
import { createCertificate } from '../../support/worlds/certificate.ts'

const whole: RequestListener = (_request, response) => void response.end(makePdf(2_000))

describe('the allowed origins of PDFs', () => {
  test('must list the scheme, host and port', () => {
    const table: [url: string, origins: string[], allowed: boolean][] = [
      ['https://files.example.com/a?b', ['https://files.example.com'], true],
      ['https://files.example.com/', ['https://files.example.com:443/'], true],
      ['https://FILES.example.com:443/', ['https://files.example.com'], true],
      ['http://files.example.com/', ['https://files.example.com'], false],
      ['https://files.example.com:8443/', ['https://files.example.com'], false],
      ['https://files.example.com./', ['https://files.example.com'], false],
      ['https://evil-files.example.com/', ['https://files.example.com'], false],
      ['https://files.example.com.evil.test/', ['https://files.example.com'], false],
      ['https://files.example.com@evil.test/', ['https://files.example.com'], false],
      ['https://a.example.com/', ['https://*.example.com'], true],
      ['https://a.b.example.com/', ['https://*.example.com'], true],
      ['https://example.com/', ['https://*.example.com'], false],
      ['https://.example.com/', ['https://*.example.com'], false],
      ['https://evilexample.com/', ['https://*.example.com'], false],
      ['http://a.example.com/', ['https://*.example.com'], false],
      ['http://a.example.com:81/', ['https://*.example.com', 'http://*.example.com:81'], true],
      ['ftp://files.example.com/', ['https://files.example.com'], false],
      ['file:///etc/passwd', ['https://files.example.com'], false],
      ['data:application/pdf,%PDF-', ['https://files.example.com'], false],
      ['https://files.example.com/', [], false],
    ]
    for (const [url, origins, allowed] of table)
      assert.equal(isAllowed(new URL(url), origins), allowed, `${url} of ${origins}`)
  })

  test('allow nothing when the list has an invalid origin', () => {
    for (const origin of ['*', 'example.com', 'https://*', 'https://a.*.com', 'https://h/path', 'file:///'])
      assert.throws(() => isAllowed(new URL('https://example.com/'), [origin]), SourceError, origin)
  })

  test('prevent connections to every other origin', async t => {
    const canary = await startUpstream(t, whole)
    const { port } = canary
    for (const origin of [`https://127.0.0.1:${port}`, `http://localhost:${port}`, `http://127.0.0.1:1`])
      await assertFails(get(canary, { origins: [origin] }), 'failed', /origin that is not allowed/)
    for (const url of ['', 'no url', `//127.0.0.1:${port}/`, 'http://'])
      await assertFails(
        fetchPdf(url, { origins: [canary.origin], allowPrivate: true }, new AbortController().signal),
        'failed',
        /is not a URL/,
      )
    for (const user of ['user:c4nary@', 'user@', ':c4nary@'])
      await assertFails(
        fetchPdf(
          `http://${user}127.0.0.1:${port}/`,
          { origins: [canary.origin], allowPrivate: true },
          new AbortController().signal,
        ),
        'failed',
        /contains a user name or a password/,
      )
    assert.equal(canary.connections, 0)
  })
})

describe('the addresses of PDF hosts', () => {
  const table: [addresses: string, isPublic: boolean][] = [
    ['8.8.8.8 1.1.1.1 172.15.255.255 172.32.0.0 100.63.0.1 100.128.0.1 192.167.1.1 223.255.255.255', true],
    ['0.0.0.0 0.1.2.3 10.0.0.1 127.0.0.1 127.255.255.255 169.254.169.254 172.16.0.1 172.31.255.255', false],
    ['192.168.0.1 100.64.0.1 100.127.255.255 192.0.0.1 192.0.2.1 198.18.0.1 198.19.255.255', false],
    ['198.51.100.7 203.0.113.7 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255', false],
    ['2606:4700:4700::1111 2a00:1450:4003:80f::200e 2001:4860:4860::8888', true],
    [':: ::1 fe80::1 fe80::1%lo febf::1 fec0::1 fc00::1 fd12:3456::1 ff02::1 2001:db8::1 3fff::1', false],
    ['::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1 ::ffff:8.8.8.8 ::127.0.0.1 64:ff9b::a00:1', false],
    ['64:ff9b:1::1 2002:7f00:1:: 2001:0:1::1 100::1 5f00::1', false],
    ['localhost 127.1 0x7f000001 2130706433 example.com [::1]', false],
  ]
  test('are accepted only if they are public', () => {
    for (const [addresses, isPublic] of table)
      for (const address of addresses.split(' ')) assert.equal(isPublicAddress(address), isPublic, address)
  })

  test('are refused when they are private, in any notation', async t => {
    const canary = await startUpstream(t, whole)
    const { port } = canary
    const hosts = ['127.0.0.1', '127.1', '0x7f.1', '2130706433', '0', '[::1]', '[::ffff:127.0.0.1]']
    for (const host of [...hosts, 'localhost', 'localhost.']) {
      const url = `http://${host}:${port}/`
      const guard = { origins: [url], allowPrivate: false }
      await assertFails(
        fetchPdf(url, guard, new AbortController().signal),
        'failed',
        /not public|\(ENOTFOUND\)/,
      )
    }
    assert.equal(canary.connections, 0)
  })

  test('are checked at the moment of the connection', async () => {
    for (const all of [true, false])
      await assert.rejects(
        new Promise((resolve, reject) =>
          lookupPublic('localhost', { all }, (error, found) => (error ? reject(error) : resolve(found))),
        ),
        /not public/,
      )
  })
})

describe('redirects of PDFs', () => {
  const redirect =
    (location: string | undefined, status = 302): RequestListener =>
    (_request, response) =>
      void response.writeHead(status, location === undefined ? {} : { location }).end('%PDF-')

  test('are followed up to three times, relative ones too', async t => {
    const upstream = await startUpstream(t, ({ url = '' }, response) => {
      const left = Number(url.slice(1))
      if (left === 0) response.end(makePdf(100))
      else response.writeHead([301, 302, 303, 307, 308][left] ?? 302, { location: `${left - 1}` }).end()
    })
    assert.equal((await readAll(await get(upstream, { path: '/3' }))).length, 100)
    assert.equal(upstream.requests.length, 4)
    await assertFails(get(upstream, { path: '/4' }), 'failed', /more than 3 redirects/)
    assert.equal(upstream.requests.length, 8)
  })

  test('end when they form a circle', async t => {
    const upstream = await startUpstream(t, redirect(`/${secret}`))
    await assertFails(get(upstream), 'failed', /more than 3 redirects/)
    assert.equal(upstream.requests.length, 4)
  })

  test('are not followed to an origin that is not allowed, or to an invalid address', async t => {
    const canary = await startUpstream(t, whole)
    for (const [location, message] of [
      [`${canary.origin}/${secret}`, /not allowed/],
      [`//127.0.0.1:${canary.port}/`, /not allowed/],
      [`http://user:pass@127.0.0.1:${canary.port}/`, /contains a user name or a password/],
      ['file:///etc/passwd', /not allowed/],
      ['http://[', /is not a URL/],
      [undefined, /is not a URL/],
    ] as const) {
      const upstream = await startUpstream(t, redirect(location))
      await assertFails(get(upstream), 'failed', message)
      assert.equal(upstream.requests.length, 1)
    }
    assert.equal(canary.connections, 0)
  })
})

describe('requests for PDFs', () => {
  test('carry only the necessary headers, also after redirects', async t => {
    const upstream = await startUpstream(t, ({ url }, response) => {
      if (url === '/pdf?key=1') response.end(makePdf(100))
      else response.writeHead(302, { location: '/pdf?key=1', 'set-cookie': 'session=1' }).end()
    })
    await readAll(await get(upstream))
    assert.equal(upstream.requests.length, 2)
    for (const { method, headers } of upstream.requests)
      assert.deepEqual(
        [method, headers],
        [
          'GET',
          {
            accept: 'application/pdf',
            'accept-encoding': 'identity',
            'user-agent': 'fatura',
            host: `127.0.0.1:${upstream.port}`,
            connection: 'close',
          },
        ],
      )
  })

  test('close their connection afterwards', async t => {
    const upstream = await startUpstream(t, whole)
    await readAll(await get(upstream))
    await eventually('the connection is closed', () => upstream.open === 0)
  })
})

describe('PDFs over HTTPS', () => {
  const certificate = createCertificate()
  const trusted = getCACertificates()
  before(() => setDefaultCACertificates([...trusted, certificate.cert]))
  after(() => setDefaultCACertificates(trusted))

  test('are delivered unchanged, even to a slow reader', async t => {
    const pdf = makePdf(1_000_000)
    const upstream = await startUpstream(t, (_request, response) => void response.end(pdf), {
      host: 'localhost',
      certificate,
    })
    const { body } = await get(upstream)
    const parts: Buffer[] = []
    for await (const part of body) {
      parts.push(part as Buffer)
      await nextTurn()
    }
    assert.ok(pdf.equals(Buffer.concat(parts)))
  })

  test('need a trusted certificate of the same host', async t => {
    const other = await startUpstream(t, whole, { host: 'localhost', certificate: createCertificate() })
    await assertFails(get(other), 'failed', /\((DEPTH_ZERO_SELF_SIGNED_CERT|[A-Z_]*CERT[A-Z_]*)\)/)
    const elsewhere = await startUpstream(t, whole, { certificate })
    await assertFails(get(elsewhere), 'failed', /\(ERR_TLS_CERT_ALTNAME_INVALID\)/)
    assert.equal(other.requests.length + elsewhere.requests.length, 0)
  })

  test('are redirected to HTTP only where the list allows it', async t => {
    const plain = await startUpstream(t, whole)
    const upstream = await startUpstream(
      t,
      (_request, response) => void response.writeHead(302, { location: `${plain.origin}/` }).end(),
      { host: 'localhost', certificate },
    )
    await assertFails(get(upstream), 'failed', /not allowed/)
    assert.equal(plain.connections, 0)
    await readAll(await get(upstream, { origins: [upstream.origin, plain.origin] }))
    assert.equal(plain.requests.length, 1)
  })
})
