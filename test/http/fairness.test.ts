/** One client does not slow the others: searches of a token are limited, and what cannot be served is refused at once. */
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { securityHeaders } from '../../src/http/server/bare-answer.ts'
import { searchWords } from '../../src/store/sql/search.ts'
import { openSearchThreads } from '../../src/store/sqlite/search-threads.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { createFolder, engines } from '../support/databases/engines.ts'
import { makeRecord } from '../support/worlds/records.ts'
import { type Answer, assertError, startService } from '../support/worlds/service.ts'
import { settle, stopClock, until } from '../support/worlds/stopped-clock.ts'

/** So many that a search is one of the slow ones. */
const manyRecords = () =>
  Array.from({ length: 1_600 }, (_, n) =>
    makeRecord({ id: `in_${n}`, issued_at: new Date(Date.UTC(2026, 0, 1 + (n % 300))).toISOString() }),
  )

for (const engine of engines) {
  describe(`fairness between tokens on ${engine.name}`, () => {
    test('two searches of a token run, fifty wait, more get 429, and other tokens search on', {
      timeout: 600_000,
    }, async t => {
      // A search may take as long as it does here.
      stopClock(t)
      const service = await startService(t, engine, { records: manyRecords() })
      const [greedy, other] = [await service.createToken(), await service.createToken()]
      let refused: Answer[] = []
      // Until more than 52 come at once: on a busy machine some are answered before the last are sent.
      while (refused.length === 0) {
        const [flood, others] = await Promise.all([
          // Fewer than the 200 reads that may wait for a connection to PostgreSQL.
          Promise.all(Array.from({ length: 150 }, () => service.list('?q=in_59', { token: greedy }))),
          Promise.all(Array.from({ length: 2 }, () => service.list('?q=in_59', { token: other }))),
        ])
        const found = flood.filter(({ status }) => status === 200)
        refused = flood.filter(({ status }) => status === 429)
        assert.equal(found.length + refused.length, 150)
        assert.ok(found.length >= 2)
        for (const { status, json } of [...found, ...others])
          assert.deepEqual([status, json.total], [200, 11], JSON.stringify(json))
      }
      for (const answer of refused) {
        assertError(answer, 429, 'rate_limited')
        assert.equal(answer.headers['retry-after'], '1')
      }
      // Other requests are not limited, and nothing is left over from the flood.
      const pages = await Promise.all(Array.from({ length: 50 }, () => service.list('', { token: greedy })))
      assert.ok(pages.every(({ status }) => status === 200))
      for (let n = 0; n < 5; n++)
        assert.equal((await service.list('?q=in_59', { token: greedy })).json.total, 11)
    })

    test('a token may run a hundred searches of an ordinary customer at once', async t => {
      const service = await startService(t, engine, { records: [makeRecord({ id: 'in_59' }), makeRecord()] })
      const answers = await Promise.all(Array.from({ length: 100 }, () => service.list('?q=in_59')))
      for (const { status, json } of answers) assert.deepEqual([status, json.total], [200, 1])
    })
  })
}

test('far more requests than can be served get 503 overloaded at once, and /live still answers', {
  timeout: 600_000,
}, async t => {
  const [sqlite] = engines
  assert.ok(sqlite !== undefined)
  const origin = 'https://app.example.com'
  // Each look at the clock takes a millisecond: to serve some forty requests is a long turn, however fast the machine is.
  let now = 0
  t.mock.method(performance, 'now', () => ++now)
  const service = await startService(t, sqlite, { records: [makeRecord()], corsOrigins: [origin] })
  const token = await service.createToken()
  const list = `GET /api/v1/client/cus_ana/invoices HTTP/1.1\r\nHost: x\r\nOrigin: ${origin}\r\nAuthorization: Bearer ${token}\r\n\r\n`
  const clients = await openClients(service.port, 200)
  const areAnswered = () => clients.every(({ answers, asked }) => answers.length >= asked)
  const findRefused = () => clients.filter(({ answers }) => answers.at(-1)?.startsWith('HTTP/1.1 503'))
  while (findRefused().length < 50) {
    for (const client of clients) {
      client.asked++
      client.socket.write(list)
    }
    await until(areAnswered)
  }
  const refused = findRefused()
  const [answer = ''] = refused[0]?.answers.slice(-1) ?? []
  for (const header of [
    ...Object.entries(securityHeaders).map(([name, value]) => `${name}: ${value}`),
    ...['retry-after: 1', 'cache-control: no-store', 'content-type: application/json'],
    ...[`access-control-allow-origin: ${origin}`, 'vary: Origin'],
  ])
    assert.ok(answer.includes(`\r\n${header}\r\n`), header)
  for (const { answers } of clients)
    for (const text of answers) {
      assert.match(text, /^HTTP\/1\.1 (?:200 |503 [\s\S]*"code":"overloaded")/)
      if (text.startsWith('HTTP/1.1 503'))
        for (const header of [
          'retry-after: 1',
          'cache-control: no-store',
          'content-type: application/json',
          'request-id: req_',
        ])
          assert.ok(text.includes(`\r\n${header}`), header)
      assert.ok(text.includes(`\r\naccess-control-allow-origin: ${origin}\r\n`))
    }
  const ids = refused.map(({ answers }) => /\r\nrequest-id: (req_[\w-]+)\r\n/.exec(answers.at(-1) ?? '')?.[1])
  assert.equal(new Set(ids).size, refused.length)
  assert.ok(answer.endsWith(`"request_id":"${ids[0]}"}}`))
  assert.ok(
    service.logs.some(line => line.includes(`"request_id":"${ids[0]}"`) && line.includes('"status":503')),
  )

  // A request in two pieces, of which the second looks like one by itself; two in one; one that is spared; and
  // what a browser asks before, for the page could not read the refusal without.
  const [pieces, pair, live] = [refused.slice(0, 15), refused.slice(15, 30), refused.slice(30, 45)]
  for (const client of clients) client.asked++
  for (const { socket } of clients) if (!pieces.some(client => client.socket === socket)) socket.write(list)
  for (const { socket } of pieces) socket.write('GET /nothing HTTP/1.1\r\nHost: x\r\nX-Rest: ')
  for (const client of pair) {
    client.asked += 2
    client.socket.write(list + list)
  }
  for (const client of live) {
    client.asked++
    client.socket.write('GET /live HTTP/1.1\r\nHost: x\r\n\r\n')
  }
  const asking = refused.slice(45, 50)
  for (const client of asking) {
    client.asked++
    client.socket.write(
      `OPTIONS /nothing HTTP/1.1\r\nHost: x\r\nOrigin: ${origin}\r\nAccess-Control-Request-Method: GET\r\n\r\n`,
    )
  }
  await settle()
  for (const { socket } of pieces) socket.write('GET /nobody HTTP/1.1\r\nHost-2: x\r\n\r\n')
  await until(areAnswered)
  for (const { answers } of live)
    assert.match(answers.at(-1) ?? '', /^HTTP\/1\.1 200 [\s\S]*\{"status":"ok"\}$/)
  for (const { answers } of asking)
    assert.match(
      answers.at(-1) ?? '',
      /^HTTP\/1\.1 204 (?=[\s\S]*access-control-allow-origin: https:)[\s\S]*access-control-max-age: 7200/,
    )

  // A few at a time are no overload: each connection serves again, and has no answer too many.
  for (const client of refused.slice(0, 45)) {
    client.asked++
    client.socket.write('GET /live HTTP/1.1\r\nHost: x\r\n\r\n')
    await until(areAnswered)
    assert.match(client.answers.at(-1) ?? '', /\{"status":"ok"\}$/)
  }
  now += 1_200
  assert.ok(clients.every(client => client.answers.length === client.asked))
  for (const client of refused.slice(0, 45)) {
    client.asked++
    client.socket.write(list)
    await until(areAnswered)
    assert.match(client.answers.at(-1) ?? '', /^HTTP\/1\.1 200 /)
  }
  for (const { socket } of clients) socket.destroy()
})

interface Client {
  socket: Socket
  asked: number
  /** Whole, head and body. */
  answers: string[]
}

async function openClients(port: number, count: number): Promise<Client[]> {
  const clients: Client[] = []
  const open = (): Promise<Client> =>
    new Promise(resolve => {
      const client: Client = {
        socket: connect(port, '127.0.0.1', () => resolve(client)),
        asked: 0,
        answers: [],
      }
      let received = ''
      client.socket.on('error', () => {})
      client.socket.setEncoding('latin1').on('data', chunk => {
        received += chunk
        for (;;) {
          const end = received.indexOf('\r\n\r\n')
          const length = Number(/\r\ncontent-length: (\d+)/i.exec(received)?.[1] ?? 0)
          if (end === -1 || received.length < end + 4 + length) return
          client.answers.push(received.slice(0, end + 4 + length))
          received = received.slice(end + 4 + length)
        }
      })
    })
  while (clients.length < count) clients.push(...(await Promise.all(Array.from({ length: 100 }, open))))
  return clients
}

test('a search on SQLite is ended at its time limit, and the next one works normally', async t => {
  const [sqlite] = engines
  assert.ok(sqlite !== undefined)
  const service = await startService(t, sqlite, { records: manyRecords() })
  const path = service.url.slice('sqlite:'.length)
  const query = { customer_id: 'cus_ana', page: 1, page_size: 10, words: searchWords('in_59') }
  const hasty = openSearchThreads(path, 0)
  t.after(() => hasty.close())
  // The thread takes longer than that to start.
  await assert.rejects(hasty.search(query), StoreUnavailable)
  // From now on no time passes: a search waits for its thread.
  stopClock(t)
  for (const { total } of await Promise.all(Array.from({ length: 3 }, () => hasty.search(query))))
    assert.equal(total, 11)
  await service.save(makeRecord({ id: 'in_59x' }))
  assert.equal((await hasty.search(query)).total, 12)
})

test('a search on SQLite reports why its thread cannot open the file', async t => {
  const path = join(await createFolder(t), 'none.db')
  const threads = openSearchThreads(path)
  t.after(() => threads.close())
  const query = { customer_id: 'cus_ana', page: 1, page_size: 10, words: searchWords('in_59') }
  // More than there are threads: one that ends is not asked again.
  for (let i = 0; i < 3; i++)
    await assert.rejects(threads.search(query), error => {
      assert.ok(error instanceof StoreUnavailable && error.cause instanceof Error, String(error))
      return /There is no database at .*none\.db/.test(error.cause.message)
    })
})
