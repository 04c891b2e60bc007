import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import type { Setting } from '../../src/cli/settings/settings.ts'
import { invoiceFields } from '../../src/domain/invoice.ts'
import {
  assertOneLine,
  createCli,
  createStoredToken,
  eventually,
  isRefused,
  occupyPort,
} from '../support/clients/cli.ts'
import { openMcpClient } from '../support/clients/mcp.ts'
import { makeHugeLines, makeInvoice, makeLine, withDocument } from '../support/worlds/records.ts'
import { refusalOf } from '../support/worlds/settings.ts'

describe('fatura serve', { concurrency: 3 }, () => {
  it('serves imported invoices to the holder of a created token', async t => {
    const cli = await createCli(t)
    const invoice = makeInvoice({ id: 'in_1', ...withDocument })
    const lines = [makeLine(), makeLine()]
    await cli.load({ ...invoice, lines }, makeInvoice({ customer_id: 'cus_rui' }))
    const token = await cli.createToken('cus_ana')
    const api = await cli.serve()
    assert.match(api.address, /^http:\/\/127\.0\.0\.1:\d+$/)

    const list = await api.get('/api/v1/client/cus_ana/invoices', token)
    assert.equal(list.status, 200)
    assert.deepEqual(Object.keys(list.json.invoices[0]), invoiceFields)
    assert.deepEqual(list.json, {
      invoices: [invoice],
      page: 1,
      page_size: 10,
      total: 1,
      total_pages: 1,
      source: 'synchronized_records',
    })
    const detail = await api.get('/api/v1/client/cus_ana/invoice/in_1', token)
    assert.equal(detail.status, 200)
    assert.deepEqual(detail.json.lines, lines)
    assert.equal((await api.get('/api/v1/client/cus_rui/invoices', token)).status, 403)
    assert.equal((await api.get('/api/v1/client/cus_ana/invoices')).status, 401)
    for (const path of ['/live', '/ready']) {
      const { status, json } = await api.get(path)
      assert.deepEqual({ status, json }, { status: 200, json: { status: 'ok' } })
    }
    const committed = await readFile(new URL('../../openapi.json', import.meta.url), 'utf8')
    assert.equal((await api.get('/api/v1/openapi.json')).text, committed)
    assert.equal(api.stderr, '')
  })

  it('serves MCP only when it is enabled', async t => {
    const cli = await createCli(t)
    await cli.load(makeInvoice({ id: 'in_1', status: 'open' }))
    const token = await cli.createToken()
    const [off, on] = await Promise.all([cli.serve(), cli.serve(['--mcp', 'on'])])
    const { status } = await fetch(`${off.address}/mcp`, { method: 'POST' })
    assert.equal(status, 404)
    const { call } = await openMcpClient(t, on.address, token)
    const { data } = await call('invoices_search', { customer_id: 'cus_ana', status: 'open' })
    assert.equal(data.invoices[0].id, 'in_1')
    const { data: explained } = await call('invoice_explain', { invoice_id: 'in_1' })
    assert.equal(explained.explanations[0].ix_sync_state, 'not_synced')
    assert.deepEqual([off.stderr, on.stderr], ['', ''])
    assert.match(refusalOf('MCP', 'yes'), /MCP must be on or off/)
  })

  it('logs one JSON line per request, without tokens, e-mail addresses and search terms', async t => {
    const cli = await createCli(t)
    await cli.load(makeInvoice({ id: 'in_1', customer_email: 'canary.data@lima.example' }))
    const token = await cli.createToken()
    const api = await cli.serve()
    const asked: [path: string, token: string | undefined, status: number, route: string | null][] = [
      ['/live', undefined, 200, '/live'],
      ['/api/v1/client/cus_ana/invoices?q=canary', token, 200, '/api/v1/client/:customerId/invoices'],
      [
        '/api/v1/client/cus_ana/invoices?q=canary%40lima.example',
        token,
        200,
        '/api/v1/client/:customerId/invoices',
      ],
      ['/api/v1/client/cus_ana/invoices?page=canary', token, 400, '/api/v1/client/:customerId/invoices'],
      ['/api/v1/client/canary@x.example/invoices', token, 400, '/api/v1/client/:customerId/invoices'],
      ['/api/v1/client/cus_ana/invoice/in_1', token, 200, '/api/v1/client/:customerId/invoice/:invoiceId'],
      ['/api/v1/client/cus_ana/invoice/canary', token, 400, '/api/v1/client/:customerId/invoice/:invoiceId'],
      ['/api/v1/client/cus_ana/invoices', undefined, 401, '/api/v1/client/:customerId/invoices'],
      ['/api/v1/client/cus_ana/invoices', 'canary', 401, '/api/v1/client/:customerId/invoices'],
      [
        `/api/v1/client/cus_ana/invoices?access_token=${token}`,
        token,
        400,
        '/api/v1/client/:customerId/invoices',
      ],
      [`/canary/${token}`, token, 404, null],
    ]
    const requestIds: (string | null)[] = []
    for (const [path, credentials, status] of asked) {
      const answer = await api.get(path, credentials)
      assert.equal(answer.status, status, path)
      requestIds.push(answer.headers.get('request-id'))
    }
    const { stdout, stderr, code } = await api.stop()
    assert.equal(code, 0)
    assert.equal(stderr, '')

    const lines = stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line))
    assert.equal(lines[0].msg, 'listening')
    assert.equal(lines.at(-1).msg, 'stopped')
    const requests = lines.slice(1, -1)
    assert.equal(requests.length, asked.length)
    for (const [index, [path, , status, route]] of asked.entries()) {
      const line = requests[index]
      assert.equal(line.msg, 'request')
      assert.equal(line.request_id, requestIds[index])
      assert.equal(line.method, 'GET')
      assert.equal(line.route, route, path)
      assert.equal(line.status, status)
      assert.equal(typeof line.ms, 'number')
      assert.ok(!Number.isNaN(Date.parse(line.time)))
    }
    assert.doesNotMatch(stdout, /canary|@/i)
    assert.ok(!stdout.includes(token.slice(16, 46)), 'the token')
  })

  it('at a signal accepts no new connection, finishes running requests and exits with 0', async t => {
    const cli = await createCli(t)
    const lines = makeHugeLines()
    await cli.load({ ...makeInvoice({ id: 'in_large' }), lines })
    const token = await cli.createToken()
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const api = await cli.serve()
      const request = (path: string) =>
        `GET ${path} HTTP/1.1\r\nHost: fatura\r\nAuthorization: Bearer ${token}\r\n`

      const half = connect(api.port, '127.0.0.1')
      half.write(request('/api/v1/client/cus_ana/invoices'))
      const slow = connect(api.port, '127.0.0.1')
      slow.write(`${request('/api/v1/client/cus_ana/invoice/in_large')}\r\n`)
      await once(slow, 'readable')
      // Connections are taken in their order, so by now the first of them is the server's too.
      assert.equal((await api.get('/live')).status, 200)

      api.child.kill(signal)
      await eventually('nobody listens any more', () => isRefused(api.port))
      assert.equal(api.child.exitCode, null, 'it waits for what is in flight')

      half.write('\r\n')
      const [answer, large] = await Promise.all([readAll(half), readAll(slow)])
      assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/)
      assert.match(answer, /\r\nconnection: close\r\n/i)
      assert.equal(JSON.parse(bodyOf(answer)).total, 1)
      assert.match(large, /^HTTP\/1\.1 200 OK\r\n/)
      assert.equal(JSON.parse(bodyOf(large)).lines.length, lines.length)
      const outcome = await api.exited
      assert.equal(outcome.code, 0, outcome.stderr)
      assert.match(outcome.stdout, /"msg":"stopped"}\n$/)
    }
  })

  it('ends at once at a second signal, even with running requests', async t => {
    const cli = await createCli(t)
    const api = await cli.serve(['--migrate'])
    const half = connect(api.port, '127.0.0.1')
    half.on('error', () => {})
    t.after(() => half.destroy())
    half.write('GET /live HTTP/1.1\r\n')
    assert.equal((await api.get('/live')).status, 200)
    api.child.kill('SIGTERM')
    await eventually('nobody listens any more', () => isRefused(api.port))
    // The end of what is in flight would be 0.
    assert.equal((await api.stop('SIGTERM')).code, 1)
  })

  it('refuses a port in use or another machine’s address, and explains how to choose another', async t => {
    const cli = await createCli(t)
    await cli.load()
    const port = await occupyPort(t)
    assertOneLine(
      await cli.run(['serve'], { env: { PORT: String(port) } }),
      new RegExp(`\\b${port}\\b`),
      /in use/,
      /--port/,
    )
    assertOneLine(await cli.run(['serve', '--host', '192.0.2.1', '--port', '0']), /192\.0\.2\.1/, /--host/)
  })

  it('refuses every wrong setting of the environment or a flag, and names it', async t => {
    const cli = await createCli(t)
    const wrong: [setting: Setting, first: string, ...others: string[]][] = [
      ['PORT', 'http', '-1', '65536'],
      ['RATE_LIMIT', '100', '0/s'],
      ['LOG_LEVEL', 'loud'],
      ['DATABASE_URL', 'data/fatura.db', 'sqlite:', 'mysql://localhost/fatura'],
      [
        'DATABASE_READ_URL',
        'postgres://a/x,sqlite:b.db',
        'sqlite:a.db,postgres://b/x',
        'sqlite:a.db,sqlite:b.db',
      ],
    ]
    for (const [setting, first, ...others] of wrong) {
      const says = new RegExp(`^${setting} must be `)
      const outcome = await cli.run(['serve', '--migrate'], {
        env: { PORT: '0', [setting]: first },
      })
      assertOneLine(outcome, new RegExp(`^fatura: ${says.source.slice(1)}`))
      for (const value of others) assert.match(refusalOf(setting, value), says)
    }
    assertOneLine(await cli.run(['serve', '--port', 'http']), /^fatura: PORT must be /)
  })

  it('prefers a flag to the environment', async t => {
    const cli = await createCli(t)
    const elsewhere = join(cli.folder, 'elsewhere.db')
    const token = await createStoredToken(`sqlite:${elsewhere}`)
    const api = await cli.serve(
      [
        '--host',
        '127.0.0.1',
        '--log-level',
        'info',
        '--rate-limit',
        '7/h',
        '--database-url',
        `sqlite:${elsewhere}`,
      ],
      {
        env: {
          HOST: '192.0.2.1',
          PORT: 'http',
          LOG_LEVEL: 'loud',
          RATE_LIMIT: 'none',
          DATABASE_URL: 'sqlite:missing.db',
        },
      },
    )
    const { status, headers } = await api.get('/api/v1/client/cus_ana/invoices', token)
    assert.equal(status, 200)
    assert.match(headers.get('ratelimit-policy') ?? '', /q=7;w=3600/)
  })

  it('reads its settings from the environment', async t => {
    const cli = await createCli(t)
    const token = await cli.createToken()
    const occupied = createServer().listen(0, '127.0.0.1')
    await once(occupied, 'listening')
    const { port } = occupied.address() as AddressInfo
    occupied.close()
    await once(occupied, 'close')
    // A level at which it does not say that it listens.
    const program = cli.start(['serve'], {
      env: {
        HOST: '127.0.0.1',
        PORT: String(port),
        LOG_LEVEL: 'warn',
        RATE_LIMIT: '2/m',
        DATABASE_URL: `sqlite:${cli.database}`,
      },
    })
    await eventually('it listens on the port asked for', async () => !(await isRefused(port)))
    const ask = () =>
      fetch(`http://127.0.0.1:${port}/api/v1/client/cus_ana/invoices`, {
        headers: { authorization: `Bearer ${token}` },
      })
    const answers = [await ask(), await ask(), await ask()]
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 429],
    )
    assert.deepEqual(
      answers.map(({ headers }) => /^"default";r=(\d+);t=(\d+)$/.exec(headers.get('ratelimit') ?? '')?.[1]),
      ['1', '0', '0'],
    )
    const [, , refused] = answers
    assert.equal(refused?.headers.get('ratelimit-policy'), '"default";q=2;w=60')
    const wait = Number(refused?.headers.get('retry-after'))
    assert.ok(wait >= 1 && wait <= 60, `Retry-After: ${wait}`)
    const body = (await refused?.json()) as { error: { code: string } }
    assert.equal(body.error.code, 'rate_limited')
    const { code, stdout } = await program.stop()
    assert.equal(code, 0)
    assert.equal(stdout, '')
  })

  it('reports a missing database with the command that creates it, and creates none', async t => {
    const cli = await createCli(t)
    assertOneLine(await cli.run(['serve', '--port', '0']), /data\/fatura\.db/, /fatura migrate/)
    assert.ok(!existsSync(dirname(cli.database)))
  })

  it('creates the database in a missing folder with --migrate', async t => {
    const cli = await createCli(t)
    const api = await cli.serve(['--migrate', '--database-url', 'sqlite:deep/down/fatura.db'])
    assert.equal((await api.get('/ready')).status, 200)
    assert.ok((await readFile(join(cli.folder, 'deep/down/fatura.db'))).length > 0)
  })

  it('refuses the schema of a newer version, with the command to run', async t => {
    const cli = await createCli(t)
    assert.equal((await cli.run(['migrate'])).code, 0)
    const setVersion = (version: number) => {
      const db = new DatabaseSync(cli.database)
      db.exec(`PRAGMA user_version = ${version}`)
      db.close()
    }
    setVersion(99)
    for (const args of [['serve', '--port', '0'], ['migrate'], ['token', 'list']])
      assertOneLine(await cli.run(args), /version 99/, /newer/, /[Uu]pgrade/)
  })

  it('refuses a file that is not a database, and leaves it unchanged', async t => {
    const cli = await createCli(t)
    const notes = join(cli.folder, 'notes.txt')
    const text = 'These are the notes of somebody who does not expect to lose them.\n'.repeat(100)
    await writeFile(notes, text)
    for (const command of ['serve', 'migrate'])
      assertOneLine(
        await cli.run([command, '--database-url', `sqlite:${notes}`]),
        /notes\.txt/,
        /not a SQLite database/,
        /DATABASE_URL/,
      )
    assert.equal(await readFile(notes, 'utf8'), text)
  })

  it('refuses another program’s database, and leaves every byte unchanged', async t => {
    const cli = await createCli(t)
    const path = join(cli.folder, 'theirs.db')
    const db = new DatabaseSync(path)
    db.exec('CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)')
    db.close()
    const before = await readFile(path)
    for (const args of [['serve', '--port', '0'], ['serve', '--port', '0', '--migrate'], ['migrate']])
      assertOneLine(
        await cli.run([...args, '--database-url', `sqlite:${path}`]),
        /theirs\.db/,
        /another program/,
        /DATABASE_URL/,
      )
    assert.ok(before.equals(await readFile(path)), 'the file is as it was')
  })

  it('reports in one line a folder that is not writable, or a database path that is a folder', async t => {
    const cli = await createCli(t)
    await writeFile(join(cli.folder, 'file'), '')
    await mkdir(join(cli.folder, 'folder'))
    const url = `sqlite:${join(cli.folder, 'file/data/fatura.db')}`
    for (const args of [['serve', '--migrate'], ['migrate'], ['import', '-']])
      assertOneLine(
        await cli.run([...args, '--database-url', url]),
        /file\/data\/fatura\.db/,
        /DATABASE_URL|folder/,
      )
    assertOneLine(await cli.run(['serve', '--database-url', url]), /fatura migrate/)
    for (const command of ['serve', 'migrate'])
      assertOneLine(await cli.run([command, '--database-url', 'sqlite:folder']), /folder/)
  })

  it('reports in one line a file system that refuses new files', {
    skip: process.platform !== 'linux' && 'there is no /proc',
  }, async t => {
    const cli = await createCli(t)
    const migrate = (path: string) =>
      cli.run(['migrate', '--database-url', `sqlite:${path}`], { patience: 10_000 })
    assertOneLine(await migrate('/proc/fatura.db'), /\/proc\/fatura\.db/)
    assertOneLine(await migrate('/proc/fatura/fatura.db'), /\/proc\/fatura\/fatura\.db/)
  })
})

async function readAll(socket: ReturnType<typeof connect>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

function bodyOf(answer: string): string {
  return answer.slice(answer.indexOf('\r\n\r\n') + 4)
}
