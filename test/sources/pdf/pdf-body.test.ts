/** Checks of an upstream's PDF: its form, its size, its time. */
import assert from 'node:assert/strict'
import type { RequestListener, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import { eventually } from '../../support/clients/cli.ts'
import {
  assertFails,
  assertRedacted,
  get,
  makePdf,
  readAll,
  secret,
  sendEndlessly,
  startUpstream,
  untilHeld,
} from '../../support/upstreams/pdf-upstream.ts'
import { settle, stopClock, until } from '../../support/worlds/stopped-clock.ts'
import { stopRequestTimeouts } from '../../support/worlds/stopped-sockets.ts'

const megabyte = 1024 * 1024

describe('the body of a PDF', () => {
  test('is delivered unchanged, with its size when the upstream gives it', async t => {
    const pdf = makePdf(300_000)
    const sized = await startUpstream(t, (_request, response) => void response.end(pdf))
    const first = await get(sized)
    assert.equal(first.size, pdf.length)
    assert.ok(pdf.equals(await readAll(first)))
    const chunked = await startUpstream(t, (_request, response) => {
      response.writeHead(200, { 'content-encoding': 'identity', 'content-type': 'text/html' })
      for (const byte of pdf.subarray(0, 7)) response.write(Buffer.from([byte]))
      response.end(pdf.subarray(7))
    })
    const second = await get(chunked)
    assert.equal(second.size, null)
    assert.ok(pdf.equals(await readAll(second)))
    await eventually('the connections are closed', () => sized.open + chunked.open === 0)
  })

  test('must begin with %PDF-', async t => {
    const bodies = ['', '%', '%PDF', '<!doctype html><p>%PDF-', '{"error":"%PDF-"}', ' %PDF-1.7', '%pdf-1.7']
    for (const body of [...bodies, '\ufeff%PDF-1.7', '%PDG-1.7'])
      for (const chunked of [true, false]) {
        const upstream = await startUpstream(t, (_request, response) => {
          response.setHeader('content-type', 'application/pdf')
          if (chunked) response.flushHeaders()
          response.end(body)
        })
        await assertFails(get(upstream), 'failed', /is not a PDF/)
        await eventually('the connection is closed', () => upstream.open === 0)
      }
  })

  test('is accepted only with status 200, without an encoding, and with a length or in chunks', async t => {
    const pdf = makePdf(100)
    const answers: [RequestListener, 'missing' | 'failed', RegExp][] = [
      ...[404, 410].map(status => [status, 'missing', /no longer has the PDF/] as const),
      ...[201, 204, 206, 300, 304, 400, 401, 403, 429, 500, 503].map(
        status => [status, 'failed', new RegExp(`answered ${status}`)] as const,
      ),
    ].map(([status, failure, message]) => [
      (_request, response) => void response.writeHead(status).end(pdf),
      failure,
      message,
    ])
    for (const encoding of ['gzip', 'br', 'identity, gzip', 'x'])
      answers.push([
        (_request, response) => void response.writeHead(200, { 'content-encoding': encoding }).end(pdf),
        'failed',
        /encoding/,
      ])
    const raw = (bytes: string): RequestListener => {
      return (_request, response) => void response.socket?.end(`HTTP/1.1 ${bytes}`)
    }
    answers.push(
      [raw('200 OK\r\n\r\n%PDF-1.7'), 'failed', /without a length/],
      [raw('101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'), 'failed', /PDF/],
      [raw('garbage\r\n\r\n'), 'failed', /\(HPE_\w+\)/],
      [raw(`200 OK\r\nx: ${'x'.repeat(70_000)}\r\n\r\n`), 'failed', /\(HPE_HEADER_OVERFLOW\)/],
      [raw('200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n'), 'failed', /\(HPE_\w+\)/],
      [raw('200 OK\r\ncontent-length: 100\r\n\r\n%PD'), 'failed', /\(ECONNRESET\)/],
      [(_request, response) => void response.destroy(), 'failed', /\(ECONNRESET\)/],
    )
    for (const [answer, failure, message] of answers) {
      const upstream = await startUpstream(t, answer)
      await assertFails(get(upstream), failure, message)
      await eventually('the connection is closed', () => upstream.open === 0)
    }
  })

  test('that is cut off ends with an error, and never looks complete', async t => {
    for (const head of [
      'content-length: 1000\r\n\r\n%PDF-1.7',
      'transfer-encoding: chunked\r\n\r\n8\r\n%PDF-1.7\r\n',
    ]) {
      const upstream = await startUpstream(
        t,
        (_request, response) => void response.socket?.write(`HTTP/1.1 200 OK\r\n${head}`),
      )
      const pdf = await get(upstream)
      upstream.requests[0]?.socket.destroy()
      await assertFails(readAll(pdf), 'failed', /\(ECONNRESET\)/)
    }
  })

  test('a PDF from a host that refuses connections fails', async () => {
    const nobody = { origin: 'http://127.0.0.1:1' } as Parameters<typeof get>[0]
    await assertFails(get(nobody), 'failed', /\(ECONNREFUSED\)/)
  })
})

describe('the size limits of a PDF', () => {
  test('a declared size of 25 MB is accepted, and one byte more is refused before reading', async t => {
    const pdf = makePdf(25 * megabyte)
    const largest = await startUpstream(t, (_request, response) => void response.end(pdf))
    assert.ok(pdf.equals(await readAll(await get(largest))))
    const larger = await startUpstream(t, (_request, response) => {
      response.writeHead(200, { 'content-length': 25 * megabyte + 1 }).write('%PDF-1.7')
    })
    await assertFails(get(larger), 'failed', /larger than allowed/)
    await eventually('the connection is closed', () => larger.open === 0)
  })

  test('a PDF without a declared size is cut off at the limit', async t => {
    const upstream = await startUpstream(t, (_request, response) => sendEndlessly(response))
    const pdf = await get(upstream)
    let received = 0
    const body = pdf.body as Readable
    await assertFails(
      (async () => {
        for await (const chunk of body) received += chunk.length
      })(),
      'failed',
      /larger than allowed/,
    )
    assert.ok(received <= 25 * megabyte && received > 24 * megabyte, `${received}`)
    await eventually('the connection is closed', () => upstream.open === 0)
  })

  test('a paused reader also pauses the upstream, and memory does not grow', async t => {
    const upstream = await startUpstream(t, (_request, response) => sendEndlessly(response))
    const pdf = await get(upstream)
    const before = process.memoryUsage().rss
    const sent = await untilHeld(upstream)
    const held = (pdf.body as Readable).readableLength
    const grown = process.memoryUsage().rss - before
    t.diagnostic(`sent ${sent} bytes, ${held} of them in the stream; memory grew by ${grown} bytes`)
    assert.ok(held <= megabyte / 2, `${held}`)
    // Most of it lies in the buffers of the loopback's sockets.
    assert.ok(sent <= 12 * megabyte, `${sent}`)
    assert.ok(grown <= 32 * megabyte, `${grown}`)
    ;(pdf.body as Readable).destroy()
    await eventually('the connection is closed', () => upstream.open === 0)
  })
})

// On a clock that stands still, what is never over hangs.
describe('the time limits of a PDF', { timeout: 600_000 }, () => {
  const silences: [where: string, requests: number, RequestListener][] = [
    ['before the headers', 1, () => {}],
    ['after the headers', 1, (_request, response) => response.flushHeaders()],
    ['within the first bytes', 1, (_request, response) => void response.write('%PD')],
    [
      'after a redirect',
      2,
      ({ url }, response) => void (url !== '/next' && response.writeHead(302, { location: '/next' }).end()),
    ],
  ]
  const hour = 3_600_000

  for (const [where, requests, answer] of silences)
    test(`a server that hangs ${where} is cut off at the deadline or after 30 s without a byte`, async t => {
      const upstream = await startUpstream(t, answer)
      const clock = stopClock(t)
      const waiting = stopRequestTimeouts(t)
      for (const guard of [{ idleMs: hour }, { deadlineMs: hour }]) {
        const before = upstream.requests.length
        let isOver = false
        const failed = assertFails(get(upstream, guard), 'timeout', /in time/).finally(() => {
          isOver = true
        })
        await until(() => upstream.requests.length === before + requests)
        await until(() => waiting.received === upstream.sent)
        await clock.pass(29_999)
        assert.equal(isOver, false)
        await clock.pass(1)
        await failed
        await until(() => upstream.open === 0)
      }
    })

  test('a slow server that sends a byte every half minute is not cut off', async t => {
    const responses: ServerResponse[] = []
    const upstream = await startUpstream(t, (_request, response) => {
      responses.push(response)
      response.write('%PDF-1.7')
    })
    const clock = stopClock(t)
    const waiting = stopRequestTimeouts(t)
    const send = async (response: ServerResponse | undefined, part: string) => {
      await new Promise(sent => response?.write(part, sent))
      await until(() => waiting.received === upstream.sent)
    }
    const slow = await get(upstream, { deadlineMs: hour })
    for (const part of 'abcd') {
      await clock.pass(29_999)
      await send(responses[0], part)
    }
    responses[0]?.end()
    assert.equal(String(await readAll(slow)), '%PDF-1.7abcd')
    const silent = await get(upstream, { deadlineMs: hour })
    await send(responses[1], 'a')
    await clock.pass(29_999)
    assert.equal((silent.body as Readable).errored, null)
    await clock.pass(1)
    await assertFails(readAll(silent), 'timeout', /in time/)
  })

  test('the deadline covers the body, whether the upstream or the reader is slow', async t => {
    const slow = await startUpstream(t, (_request, response) => {
      response.write('%PDF-1.7')
      const timer = setInterval(() => response.write('x'), 1_000)
      response.on('close', () => clearInterval(timer))
    })
    const fast = await startUpstream(t, (_request, response) => void response.end(makePdf(megabyte)))
    const clock = stopClock(t)
    for (const upstream of [slow, fast]) {
      const { body } = await get(upstream)
      await clock.pass(29_999)
      assert.equal((body as Readable).errored, null)
      await clock.pass(1)
      await assertFails(readAll({ body, size: null }), 'timeout', /in time/)
    }
    await until(() => slow.open + fast.open === 0)
  })

  test('an abort ends the transfer at once at any step, and a time-out is reported as such', async t => {
    for (const [, requests, answer] of silences) {
      const upstream = await startUpstream(t, answer)
      for (const [reason, failure, message] of [
        [new Error(secret), 'failed', /request for the PDF was canceled/],
        [new DOMException('late', 'TimeoutError'), 'timeout', /in time/],
      ] as const) {
        const before = upstream.requests.length
        const gone = new AbortController()
        const asked = get(upstream, { signal: gone.signal })
        await eventually('it hangs', () => upstream.requests.length === before + requests)
        gone.abort(reason)
        await assertFails(asked, failure, message)
        await eventually('the connection is closed', () => upstream.open === 0)
      }
    }
    const upstream = await startUpstream(t, (_request, response) => sendEndlessly(response))
    const before = new AbortController()
    before.abort()
    await assertFails(get(upstream, { signal: before.signal }), 'failed', /request for the PDF was canceled/)
    assert.equal(upstream.connections, 0)
    const during = new AbortController()
    const { body } = await get(upstream, { signal: during.signal })
    const error = new Promise(resolve => body.once('error', resolve))
    during.abort()
    assertRedacted(await error)
    await eventually('the connection is closed', () => upstream.open === 0)
  })

  test('an error before anybody reads the PDF does not end the process', async t => {
    const upstream = await startUpstream(t, (_request, response) => void response.write('%PDF-1.7'))
    const pdf = await get(upstream)
    upstream.requests[0]?.socket.destroy()
    await eventually('the PDF has failed', () => (pdf.body as Readable).errored !== null)
    await settle()
    await assertFails(readAll(pdf), 'failed', /\(ECONNRESET\)/)
  })
})
