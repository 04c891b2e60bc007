/** The end of a running service: no request is lost, and nothing delays it for ever. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, get as httpGet, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { describe, it, type TestContext } from 'node:test'
import { pino } from 'pino'
import { type ApiOptions, serveUntil, startApi } from '../../src/cli/start/start-api.ts'
import { type Cli, createCli, eventually, isRefused, type Serving, serving } from '../support/clients/cli.ts'
import { ask } from '../support/clients/load.ts'
import { countConnections, openRaw } from '../support/clients/raw-client.ts'
import { startTraffic } from '../support/clients/traffic.ts'
import { answer, apiKey, startInvoiceXpress } from '../support/upstreams/invoicexpress-upstream.ts'
import { makePdf, startUpstream } from '../support/upstreams/pdf-upstream.ts'
import { makeHugeLines, makeInvoice, makeLine, withDocument } from '../support/worlds/records.ts'
import { refusalOf } from '../support/worlds/settings.ts'
import { type StoppedClock, settle, stopClock, until } from '../support/worlds/stopped-clock.ts'

const list = '/api/v1/client/cus_ana/invoices'
const detail = '/api/v1/client/cus_ana/invoice/in_1'
const paths = [list, detail, '/live']
const patient = { timeout: 600_000 }

async function load(cli: Cli): Promise<string> {
  await cli.load(
    { ...makeInvoice({ id: 'in_1', ...withDocument }), lines: [makeLine()] },
    makeInvoice({ id: 'in_2' }),
    { ...makeInvoice({ id: 'in_large' }), lines: makeHugeLines() },
  )
  return cli.createToken()
}

/** What `serve` and `up` run, within this process and by a stopped clock. */
async function startStopped(t: TestContext, options: Partial<ApiOptions> = {}) {
  const cli = await createCli(t)
  const token = await load(cli)
  const signal = Promise.withResolvers<number>()
  let hasEnded = false
  let clock: StoppedClock | undefined
  t.after(async () => {
    signal.resolve(0)
    while (!hasEnded) await clock?.pass(1_000)
  })
  clock = stopClock(t)
  const log = pino({ base: null }, { write() {} })
  const settings = { host: '127.0.0.1', port: 0, rateLimit: null, web: false, stripe: null }
  const api = await startApi({
    ...{ ...settings, invoiceXpress: null, url: `sqlite:${cli.database}`, log },
    ...options,
  })
  const ended = serveUntil(signal.promise, api, log).then(() => {
    hasEnded = true
  })
  return {
    clock,
    token,
    address: api.address,
    port: Number(new URL(api.address).port),
    ended,
    hasEnded: () => hasEnded,
    /** As a signal does, after which the service goes on for so long. */
    async end(delayMs: number): Promise<void> {
      signal.resolve(delayMs)
      await settle()
    },
  }
}

const agentOf = (t: TestContext) => {
  const agent = new Agent({ keepAlive: true })
  t.after(() => agent.destroy())
  return agent
}

/** PDFs that are sent in part until they are let go. */
async function holdPdfs(t: TestContext) {
  const pdf = makePdf(400_000)
  const held: ServerResponse[] = []
  const files = await startUpstream(t, (_request, response) => {
    response.writeHead(200, { 'content-length': pdf.length })
    response.write(pdf.subarray(0, 10_000))
    held.push(response)
  })
  const upstream = await startInvoiceXpress(t, answer({ output: { pdfUrl: `${files.origin}/a.pdf` } }))
  return {
    pdf,
    base: upstream.origin,
    pdfOrigins: [files.origin],
    letGo: () => held.forEach(response => void response.end(pdf.subarray(10_000))),
  }
}

async function openDownload(address: string, token: string): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${token}` }
  const [incoming] = await once(httpGet(`${address}${detail}/ix/download`, { headers }), 'response')
  assert.equal(incoming.statusCode, 200)
  return incoming
}

async function start(cli: Cli, args: readonly string[], env: Record<string, string>): Promise<Serving> {
  const program = cli.start([...args, '--port', '0'], { env })
  const [, address = ''] = await program.waitFor(/"address":"(http:[^"]+)","msg":"listening"/)
  const api = serving(program, address)
  return api
}

describe('a service that ends', () => {
  it('makes /ready fail first, and answers all requests until the delay is over', patient, async t => {
    const { clock, address, port, token, end, ended } = await startStopped(t)
    const agent = agentOf(t)
    const first = await ask(address + list, token, agent)
    assert.deepEqual([first.status, first.headers.connection], [200, 'keep-alive'])
    assert.equal((await ask(`${address}/ready`, '')).status, 200)

    await end(60_000)
    for (const passed of [0, 59_999]) {
      await clock.pass(passed)
      const ready = await ask(`${address}/ready`, '')
      assert.deepEqual([ready.status, ready.headers['retry-after']], [503, '1'])
      assert.equal(JSON.parse(ready.text).error.code, 'unavailable')
      // Over the connection that was open, and over new ones.
      for (const through of [agent, agentOf(t)]) {
        const { status, headers } = await ask(address + list, token, through)
        assert.deepEqual([status, headers.connection], [200, 'close'])
        assert.equal(Object.keys(through.freeSockets).length, 0)
      }
      assert.equal((await ask(`${address}/live`, '')).status, 200)
    }
    await clock.pass(1 + 500)
    assert.ok(await isRefused(port))
    await clock.pass(1_500)
    await ended
  })

  it(
    'closes idle connections after a second of silence, and answers their requests until then',
    patient,
    async t => {
      const { clock, address, port, token, end, hasEnded, ended } = await startStopped(t)
      const agent = agentOf(t)
      const silent = openRaw(port)
      assert.equal((await ask(address + list, token, agent)).status, 200)
      await end(0)
      await clock.pass(1_000)
      assert.ok(await isRefused(port))
      const { status, headers } = await ask(address + list, token, agent)
      assert.deepEqual([status, headers.connection], [200, 'close'])
      await until(() => countConnections(port) === 1)
      assert.equal(hasEnded(), false)
      await clock.pass(500)
      await Promise.all([silent.ended, ended])
      silent.socket.destroy()
    },
  )

  it('cuts off an endless connection after 8.5 seconds', patient, async t => {
    const { clock, port, token, end, hasEnded, ended } = await startStopped(t)
    const path = detail.replace('in_1', 'in_large')
    const { socket } = openRaw(
      port,
      `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`,
    )
    t.after(() => socket.destroy())
    await once(socket, 'data')
    socket.pause()
    await end(0)
    // A delay of no time takes a millisecond.
    await clock.pass(1 + 8_499)
    assert.deepEqual([countConnections(port), hasEnded()], [1, false])
    await clock.pass(1)
    await ended
  })

  it('loses no request of idle, busy and new connections under traffic', patient, async t => {
    const { clock, address, token, end, hasEnded } = await startStopped(t)
    const traffic = startTraffic({
      ...{ address, paths, token, busy: 6, idle: 20, fresh: 4, stubborn: 8 },
      pauses: { busy: 90, fresh: 130 },
      // Shorter than the delay and the grace after it.
      idleFor: [300, 2_500],
    })
    await clock.pass(2_600)
    const before = traffic.samples.length
    await end(2_000)
    while (!hasEnded()) await clock.pass(50)
    assert.ok(clock.passedMs >= 2_600 + 2_000)
    traffic.stop()
    await clock.pass(3_000)
    await traffic.ended
    const lost = traffic.samples.filter(({ status }) => status !== 200)
    assert.deepEqual(
      lost.map(({ status, text }) => [status, text.slice(0, 200)]),
      [],
      `of ${traffic.samples.length}`,
    )
    assert.ok(before > 100 && traffic.samples.length > before + 100, 'it went on serving')
  })

  it('answers clients that connect while it checks for new connections', patient, async t => {
    const { clock, address, port, end, ended } = await startStopped(t)
    await end(0)
    await clock.pass(50)
    const asked = Array.from({ length: 20 }, () => ask(`${address}/live`, ''))
    await until(() => countConnections(port) === 20)
    await clock.pass(1_000)
    assert.deepEqual(
      (await Promise.all(asked)).map(({ status }) => status),
      Array(20).fill(200),
    )
    assert.ok(await isRefused(port))
    await clock.pass(1_500)
    await ended
  })

  it('sends a running PDF to its end', patient, async t => {
    const { pdf, letGo, ...files } = await holdPdfs(t)
    const invoiceXpress = { account: null, apiKey, ...files }
    const { clock, address, port, token, end, ended } = await startStopped(t, { invoiceXpress })
    const incoming = await openDownload(address, token)
    await end(1_000)
    await clock.pass(1_000 + 500)
    assert.ok(await isRefused(port), 'nobody can connect any more')
    // Longer than idle connections are given.
    await clock.pass(5_000)
    letGo()
    assert.ok((await buffer(incoming)).equals(pdf))
    await clock.pass(2_000)
    await ended
  })
})

describe('the end of fatura serve and fatura up', { concurrency: 3 }, () => {
  for (const args of [['serve'], ['up']])
    it(
      `comes after SIGTERM and the delay in ${args.join(' ')}, or at once after a second signal`,
      patient,
      async t => {
        const cli = await createCli(t)
        const token = await load(cli)
        const api = await start(cli, args, { SHUTDOWN_DELAY: '600s' })
        api.child.kill('SIGTERM')
        await eventually('/ready turns', async () => (await api.get('/ready')).status === 503)
        await eventually('it says so', () => /"delay_ms":600000,"msg":"stopping"/.test(api.stdout))
        const { status, headers } = await ask(api.address + list, token, agentOf(t))
        assert.deepEqual([status, headers.connection], [200, 'close'])
        assert.equal((await api.stop('SIGTERM')).code, 1)
        await eventually('nobody is left', () => isRefused(api.port))
      },
    )

  it('comes at SIGINT without the delay', patient, async t => {
    const cli = await createCli(t)
    await load(cli)
    const api = await start(cli, ['serve'], { SHUTDOWN_DELAY: '600s' })
    const { code, stdout, stderr } = await api.stop('SIGINT')
    assert.deepEqual([code, stderr], [0, ''])
    assert.match(stdout, /"msg":"stopped"}\n$/)
  })

  it('has a delay from 0s to 600s, and any other value stops the start', async t => {
    for (const delay of ['5', '5m', '-1s', '1.5s', '601s', 'soon'])
      assert.match(refusalOf('SHUTDOWN_DELAY', delay), /^SHUTDOWN_DELAY must be .*0s to 600s/)
    const cli = await createCli(t)
    for (const command of ['serve', 'up']) {
      const { code, stderr } = await cli.run([command, '--port', '0', '--shutdown-delay=-1s'])
      assert.equal(code, 1)
      assert.equal(stderr, `fatura: ${refusalOf('SHUTDOWN_DELAY', '-1s')}\n`)
    }
  })
})
