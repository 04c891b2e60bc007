/** The address of a request's sender behind proxies: for limits and in the log. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseNetworks } from '../../src/cli/settings/access-settings.ts'
import { InvalidSetting } from '../../src/cli/settings/parsers.ts'
import { createToken } from '../../src/http/access/token.ts'
import { engines } from '../support/databases/engines.ts'
import { type Service, shareService, startService } from '../support/worlds/service.ts'

const [engine] = engines as readonly [(typeof engines)[number]]
const path = '/api/v1/client/cus_ana/invoices'

/** The address in the log line of a refused request. */
async function clientOf(service: Service, headers: Record<string, string | string[]>): Promise<string> {
  const { status, headers: given } = await service.get(path, { token: null, headers })
  assert.equal(status, 401)
  const line = service.logs.findLast(text => text.includes(String(given['request-id'])))
  return JSON.parse(line ?? '').client
}

describe('the client’s address behind trusted proxies', () => {
  const trustedProxies = parseNetworks('127.0.0.1, 10.0.0.0/8,2001:db8:ffff::/48')
  const service = shareService(engine, { trustedProxies })
  const cases: [what: string, headers: Record<string, string | string[]>, client: string][] = [
    ['a request without X-Forwarded-For', {}, '127.0.0.1'],
    ['one address in X-Forwarded-For', { 'x-forwarded-for': '192.0.2.7' }, '192.0.2.7'],
    [
      'a header that begins with the client’s own value',
      { 'x-forwarded-for': '192.0.2.1, 198.51.100.2' },
      '198.51.100.2',
    ],
    ['two X-Forwarded-For headers', { 'x-forwarded-for': ['192.0.2.1', '198.51.100.2'] }, '198.51.100.2'],
    [
      'a request through two proxies',
      { 'x-forwarded-for': '192.0.2.1, 198.51.100.2, 10.1.2.3' },
      '198.51.100.2',
    ],
    ['a header with proxies only', { 'x-forwarded-for': '10.1.2.3,10.9.9.9' }, '10.1.2.3'],
    ['an address with a port', { 'x-forwarded-for': '192.0.2.7:4711' }, '192.0.2.7'],
    ['an IPv6 address', { 'x-forwarded-for': '2001:db8::1, 2001:db8:ffff::9' }, '2001:db8::1'],
    ['an IPv6 address with a port', { 'x-forwarded-for': '[2001:db8::1]:4711' }, '2001:db8::1'],
    ['an IPv4 address in IPv6 form', { 'x-forwarded-for': '::ffff:192.0.2.7, ::ffff:10.0.0.1' }, '192.0.2.7'],
    ['a header whose last entry is not an address', { 'x-forwarded-for': '192.0.2.1, unknown' }, '127.0.0.1'],
    ['an empty header', { 'x-forwarded-for': '' }, '127.0.0.1'],
    ['a header with JSON characters', { 'x-forwarded-for': '192.0.2.1, "},{' }, '127.0.0.1'],
    ['a Forwarded header, which is ignored', { forwarded: 'for=192.0.2.1' }, '127.0.0.1'],
  ]
  for (const [what, headers, client] of cases)
    test(`is ${client} for ${what}`, async () => assert.equal(await clientOf(service(), headers), client))

  test('is in the log of a refused token, and in no other log line', async () => {
    const { headers } = await service().get(path, { headers: { 'x-forwarded-for': '192.0.2.7' } })
    const line = service().logs.findLast(text => text.includes(String(headers['request-id'])))
    assert.equal(JSON.parse(line ?? '').client, undefined)
  })

  test('is the address against which wrong tokens count', async () => {
    const send = async (address: string) =>
      (await service().get(path, { token: createToken().token, headers: { 'x-forwarded-for': address } }))
        .status
    for (let n = 0; n < 100; n++) assert.equal(await send(`192.0.2.1, 198.51.100.${n % 2}`), 401)
    assert.equal(await send('198.51.100.9'), 401)
    for (let n = 0; n < 51; n++) await send('198.51.100.1')
    assert.equal(await send('198.51.100.1'), 429)
    assert.equal(await send('198.51.100.0'), 401)
  })
})

test('the header X-Forwarded-For is ignored without trusted proxies', async t => {
  const service = await startService(t, engine)
  const headers = { 'x-forwarded-for': '192.0.2.7', forwarded: 'for=192.0.2.7' }
  assert.equal(await clientOf(service, headers), '127.0.0.1')
})

test('TRUSTED_PROXIES accepts only addresses and networks', () => {
  for (const text of ['127.0.0.1', '::1', '10.0.0.0/8,2001:db8::/32', '0.0.0.0/1']) parseNetworks(text)
  for (const text of [
    '',
    'localhost',
    '0.0.0.0/0',
    '::/0',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '1.2.3',
    '::1/129',
    '::1,',
    '*',
  ])
    assert.throws(() => parseNetworks(text), InvalidSetting, text)
})
