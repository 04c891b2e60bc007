/** The start, end and recipient of requests: an unclear request is refused once, and never inside an answer. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import { openRaw, parseAnswers, sendRaw } from '../support/clients/raw-client.ts'
import { engines } from '../support/databases/engines.ts'
import { makeRecord } from '../support/worlds/records.ts'
import { type Answer, assertError, shareService, startService } from '../support/worlds/service.ts'
import { settle, until } from '../support/worlds/stopped-clock.ts'

const get = (path: string, ...headers: string[]) =>
  `${[`GET ${path} HTTP/1.1`, 'Host: x', ...headers].join('\r\n')}\r\n\r\n`

const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status)

for (const engine of engines)
  describe(`HTTP framing on ${engine.name}`, () => {
    const service = shareService(engine, { records: [makeRecord({ id: 'in_1' })] })

    test('a missing, repeated or invalid Host gets one 400, and the connection closes', async () => {
      for (const lines of [
        [],
        ['Host: a.example', 'Host: a.example'],
        ['Host: a.example', 'host: b.example'],
        ['Host: a b'],
        ['Host: a/b'],
        ['Host: user@a.example'],
        ['Host: a.example, b.example:x'],
        ['Host: a.example:port'],
        ['Host: a.example:65536'],
        ['Host: a:99999'],
        ['Host: [::1]:99999'],
        ['Host: [::1'],
        ['Host: a%zz'],
        ['Host: "a"'],
        ['Host: \u00e9'],
      ]) {
        const head = ['GET /live HTTP/1.1', ...lines].join('\r\n')
        const answers = await sendRaw(service().port, `${head}\r\n\r\n${get('/live')}`)
        assert.equal(answers.length, 1, lines.join())
        assertError(answers[0] as Answer, 400, 'invalid_request')
      }
    })

    test('the answer to HEAD never has a body, even for a refused request', async () => {
      const client = openRaw(service().port, 'HEAD * HTTP/1.1\r\nHost: x\r\n\r\n')
      await client.ended
      client.socket.destroy()
      assert.match(
        client.raw.toString(),
        /^HTTP\/1\.1 400 [\s\S]*\r\ncontent-length: [1-9]\d*\r\n[\s\S]*\r\n\r\n$/,
      )
    })

    test('any valid Host is accepted, and HTTP/1.0 needs none', async () => {
      for (const host of [
        'a',
        'a.example:80',
        '127.0.0.1:1',
        '[::1]:3000',
        '[::1]',
        'a_b.example',
        'a:',
        '',
      ]) {
        const bytes = `GET /live HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`
        assert.deepEqual(statuses(await sendRaw(service().port, bytes)), [200], host)
      }
      assert.deepEqual(statuses(await sendRaw(service().port, 'GET /live HTTP/1.0\r\n\r\n')), [200])
    })

    test('an unknown transfer coding or an invalid chunk gets exactly one 400', async () => {
      const coded = (coding: string, body: string) => get('/live', `Transfer-Encoding: ${coding}`) + body
      for (const bytes of [
        coded('xchunked', '0\r\n\r\n'),
        coded('identity', ''),
        coded('gzip', 'x'),
        coded('gzip, chunked', '0\r\n\r\n'),
        coded('chunked, chunked', '0\r\n\r\n'),
        coded('chunked\r\nTransfer-Encoding: chunked', '0\r\n\r\n'),
        coded('chunked', 'zz\r\n\r\n'),
        coded('chunked', '3\r\nabcd\r\n0\r\n\r\n'),
        coded('chunked', '3\r\nabc\r\nx\r\n\r\n'),
        coded('chunked', '-1\r\n\r\n'),
        coded('chunked', '2\nab\n0\n\n'),
        'GET /live HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
        `POST /live HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`,
      ]) {
        const answers = await sendRaw(service().port, bytes + get('/live'))
        assert.deepEqual(statuses(answers), [400], bytes)
        assertError(answers[0] as Answer, 400, 'invalid_request')
      }
    })

    test('an invalid chunk after valid chunks gets exactly one 400', async () => {
      const client = openRaw(service().port, get('/live', 'Transfer-Encoding: chunked'))
      await settle()
      client.socket.write('3\r\nabc\r\n')
      await settle()
      client.socket.write('zz\r\n')
      await client.ended
      client.socket.destroy()
      assert.deepEqual(statuses(parseAnswers(client.raw)), [400])
    })

    test('a chunked body is ignored up to 8 KiB, and gets 413 beyond', async () => {
      const chunked = (size: number) =>
        `${get('/live', 'Connection: close', 'Transfer-Encoding: chunked')}${size.toString(16)}\r\n${'x'.repeat(size)}\r\n0\r\n\r\n`
      assert.deepEqual(statuses(await sendRaw(service().port, chunked(8_192))), [200])
      const [refused] = await sendRaw(service().port, chunked(8_193))
      assertError(refused as Answer, 413, 'payload_too_large')
    })

    test('of pipelined requests, the valid ones are answered in order, then the invalid one gets 400', async () => {
      const token = await service().createToken()
      const list = get('/api/v1/client/cus_ana/invoices', `Authorization: Bearer ${token}`)
      for (const [bad, status] of [
        ['garbage\r\n\r\n', 400],
        ['GET /live HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n', 400],
        ['FOO /live HTTP/1.1\r\nHost: x\r\n\r\n', 405],
      ] as const) {
        const answers = await sendRaw(
          service().port,
          `${list}${get('/nothing')}${list}${get('/live')}${bad}${list}`,
        )
        assert.deepEqual(statuses(answers), [200, 404, 200, 200, status], bad)
        assert.equal(answers[0]?.json.total, 1)
        assert.deepEqual(answers[3]?.json, { status: 'ok' })
      }
    })

    test('33 pipelined requests are answered in order, and one more ends the connection', async t => {
      // Its log is counted: nobody else writes there.
      const service = await startService(t, engine, { records: [makeRecord({ id: 'in_1' })] })
      const token = await service.createToken()
      const asked = Array.from({ length: 500 }, (_, i) =>
        get(`/api/v1/client/cus_${i}/invoice/in_1`, `Authorization: Bearer ${token}`),
      )
      const answers = await sendRaw(
        service.port,
        asked.slice(0, 32).join('') + get('/live', 'Connection: close'),
      )
      assert.equal(answers.length, 33)
      // The log has them in the order in which they were answered.
      const lines = service.logs.map(line => JSON.parse(line))
      assert.deepEqual(
        lines.slice(0, 32).map(({ customer_id }) => customer_id),
        asked.slice(0, 32).map((_, i) => `cus_${i}`),
      )
      assert.deepEqual(
        answers.map(({ headers }) => headers['request-id']),
        lines.map(({ request_id }) => request_id),
      )
      const greedy = openRaw(service.port, asked.join(''))
      await greedy.ended
      assert.ok(parseAnswers(greedy.raw).length <= 33)
      assert.equal((await service.get('/live')).status, 200)
    })

    test('a running PDF download gets no other bytes, whatever its client sends meanwhile', async t => {
      const size = 3_000_000
      let letGo = () => {}
      const service = await startService(t, engine, {
        records: [makeRecord({ id: 'in_1' })],
        payments: {
          fetchLines: async () => null,
          openPdf: async () => {
            const goOn = new Promise<void>(resolve => {
              letGo = resolve
            })
            return { size, body: Readable.from(writeInParts(size, goOn)) }
          },
        },
      })
      const token = await service.createToken()
      const download = get(
        '/api/v1/client/cus_ana/invoice/in_1/payments/download',
        `Authorization: Bearer ${token}`,
      )
      for (const [bytes, after] of [
        ['garbage\r\n\r\n', [400]],
        ['FOO / HTTP/1.1\r\n\r\n', [405]],
        [`${get('/live')}${get('/nothing')}\0\0\r\n\r\n`, [200, 404, 400]],
        [get('/live', 'Transfer-Encoding: identity'), [400]],
      ] as const) {
        const client = openRaw(service.port, download)
        await until(() => client.raw.length > 0)
        client.socket.write(bytes)
        await settle()
        letGo()
        await client.ended
        client.socket.destroy()
        const [pdf, ...others] = parseAnswers(client.raw)
        assert.equal(pdf?.status, 200)
        assert.equal(Buffer.byteLength(pdf?.text ?? ''), size)
        assert.match(pdf?.text ?? '', /^%PDF-x+$/)
        assert.deepEqual(statuses(others), after)
      }
    })

    test('an unsupported HTTP version gets 400 in the usual form', async () => {
      for (const bytes of [
        'GET /live HTTP/2.0\r\nHost: x\r\n\r\n',
        'GET /live HTTP/3.0\r\nHost: x\r\n\r\n',
        'GET /live HTTP/1.2\r\nHost: x\r\n\r\n',
        'GET /live HTTP/0.9\r\nHost: x\r\n\r\n',
        'GET /live\r\n\r\n',
        'GET /% HTTP/2.0\r\nHost: x\r\n\r\n',
        'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
        'PRI *pHTTP/2.0\r\n\r\nSM\r\n\r\n',
        'PRI /live HTTP/1.1\r\nHost: x\r\n\r\n',
      ]) {
        const answers = await sendRaw(service().port, bytes)
        assert.deepEqual(statuses(answers), [400], bytes)
        assertError(answers[0] as Answer, 400, 'invalid_request')
      }
    })

    test('OPTIONS * gets 204 with Allow, and a whole URL counts as its path', async () => {
      const [options] = await sendRaw(
        service().port,
        'OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
      )
      assert.deepEqual([options?.status, options?.headers.allow], [204, 'GET, HEAD, OPTIONS'])
      for (const [target, status] of [
        ['http://x/live', 200],
        ['HTTPS://x:1/live?a=b', 200],
        ['http://x/nothing', 404],
        ['http://x', 404],
        ['ftp://x/live', 404],
        ['*', 400],
      ] as const)
        assert.deepEqual(
          statuses(await sendRaw(service().port, get(target, 'Connection: close'))),
          [status],
          target,
        )
    })

    test('an upgrade is ignored: the request is answered in HTTP/1.1 and the connection closes', async () => {
      for (const protocol of ['websocket', 'h2c', 'TLS/1.0']) {
        const upgrade = get('/live', 'Connection: Upgrade', `Upgrade: ${protocol}`)
        const [answer, ...others] = await sendRaw(service().port, upgrade + get('/nothing'))
        assert.deepEqual([answer?.status, answer?.headers.connection], [200, 'close'])
        assert.deepEqual(others, [])
      }
    })

    test('Expect: 100-continue gets 100, and 413 when the body is too large', async () => {
      for (const [lines, body, status] of [
        [['Content-Length: 9000'], '', 413],
        [['Content-Length: 2', 'Connection: close'], 'ab', 200],
        [['Transfer-Encoding: chunked', 'Connection: close'], '0\r\n\r\n', 200],
      ] as const) {
        const client = openRaw(service().port, get('/live', 'Expect: 100-continue', ...lines))
        await until(() => client.raw.length > 0)
        const begun = client.raw.toString()
        assert.match(begun, /^HTTP\/1\.1 100 Continue\r\n\r\n/)
        client.socket.write(body)
        await client.ended
        client.socket.destroy()
        const rest = Buffer.from(client.raw.toString().slice('HTTP/1.1 100 Continue\r\n\r\n'.length))
        assert.deepEqual(statuses(parseAnswers(rest)), [status])
      }
    })
  })

/** A PDF's first bytes, and once it may go on, letters in pieces. */
async function* writeInParts(size: number, goOn: Promise<void>): AsyncGenerator<Buffer> {
  yield Buffer.from('%PDF-')
  await goOn
  for (let left = size - 5; left > 0; left -= 100_000) yield Buffer.alloc(Math.min(left, 100_000), 'x')
}
