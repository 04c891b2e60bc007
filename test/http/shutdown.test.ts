/** The end of a running service: no request is lost, and nothing delays it for ever. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, get as httpGet, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { campaign, reportFigure } from '../support/campaign.ts'
import { type Cli, createCli, eventually, isRefused, type Serving, serving } from '../support/cli.ts'
import { answer, apiKey, startInvoiceXpress } from '../support/invoicexpress-upstream.ts'
import { ask } from '../support/load.ts'
import { assertWithin, onThisMachine } from '../support/machine-speed.ts'
import { makePdf, startUpstream } from '../support/pdf-upstream.ts'
import { makeHugeLines, makeInvoice, makeLine, withDocument } from '../support/records.ts'
import { refusalOf } from '../support/settings.ts'
import { startTraffic, type Traffic } from '../support/traffic.ts'

const list = '/api/v1/client/cus_ana/invoices'
const detail = '/api/v1/client/cus_ana/invoice/in_1'
const paths = [list, detail, '/live']

/** After the delay, everything ends within so long, in milliseconds. */
const endWithin = 10_000

/** With the grace of a second after it, so much longer than what idle connections and the proxy take that a slow machine is in time. */
const delayMs = 4_000

async function load(cli: Cli): Promise<string> {
  await cli.load({ ...makeInvoice({ id: 'in_1' }), lines: [makeLine()] }, makeInvoice({ id: 'in_2' }))
  return cli.createToken()
}

interface Round {
  args?: readonly string[]
  /** Minimum of requests before the signal, unless `prepare` decides its time. */
  atLeast?: number
  /** Runs before the signal, under traffic. */
  prepare?(api: Serving, traffic: Traffic): Promise<unknown>
  signal?(api: Serving): void
}

/** Asserts that a service ends under traffic without the loss of a request; resolves with how many there were. */
async function endUnderTraffic(
  cli: Cli,
  token: string,
  { args = [], atLeast = campaign(150, 600), prepare, signal }: Round,
): Promise<number> {
  const api = await cli.serve(['--rate-limit', 'off', '--log-level', 'debug', ...args], {
    env: { SHUTDOWN_DELAY: `${delayMs / 1_000}s` },
  })
  const { address } = api
  // Shorter than the delay and the grace after it.
  const loops = { busy: 6, idle: 20, fresh: 4, stubborn: 8 }
  const traffic = startTraffic({ address, paths, token, ...loops, idleFor: [300, 2_500] })
  // Until then every idle connection was used.
  await (prepare?.(api, traffic) ?? sleep(1_200))
  if (prepare === undefined) await eventually('the traffic runs', () => traffic.samples.length >= atLeast)
  const asked = performance.now()
  const before = traffic.samples.length
  if (signal === undefined) api.child.kill('SIGTERM')
  else signal(api)
  const { code, stderr } = await api.exited
  const took = performance.now() - asked
  traffic.stop()
  await traffic.ended
  const lost = traffic.samples.filter(({ status }) => status !== 200)
  assert.deepEqual(
    lost.map(({ status, text, at }) => [status, text.slice(0, 200), Math.round(at - asked)]),
    [],
    `${lost.length} of ${traffic.samples.length} lost`,
  )
  assert.deepEqual([code, stderr], [0, ''])
  assert.ok(took >= delayMs, `took ${took} ms`)
  assertWithin(took, delayMs + endWithin)
  assert.ok(traffic.samples.length > before, 'it went on serving')
  return traffic.samples.length
}

async function endAgainAndAgain(t: TestContext, round: Round): Promise<void> {
  const cli = await createCli(t)
  const token = await load(cli)
  const shutdowns = campaign(1, 5)
  let sent = 0
  for (let turn = 0; turn < shutdowns; turn++) sent += await endUnderTraffic(cli, token, round)
  reportFigure(t, 'R7', `0 of ${sent} requests lost in ${shutdowns} shutdowns`)
}

const pidsOf = (api: Serving): number[] =>
  [...api.stdout.matchAll(/"pid":(\d+),"msg":"a worker started"/g)].map(([, pid]) => Number(pid))

function bothServe(api: Serving): Promise<unknown> {
  const met = new Set<string>()
  return eventually('both serve', async () => {
    const { headers } = await ask(`${api.address}/live`, '')
    return met.add(String(headers['request-id']).slice(0, 'req_'.length + 12)).size === 2
  })
}

/** Resolves once another worker took the place of one that was ended, and meanwhile the service was ready. */
async function renewOne(api: Serving, traffic: Traffic): Promise<void> {
  await bothServe(api)
  process.kill(pidsOf(api)[0] ?? 0, 'SIGTERM')
  await eventually('another runs', () => pidsOf(api).length === 3)
  for (let time = 0; time < 10; time++) assert.equal((await api.get('/ready')).status, 200)
  const before = traffic.samples.length
  await eventually('the traffic goes on', () => traffic.samples.length > before + 50)
}

const workers = ['--workers', '2']

// Most of them wait most of the time: many at once, the longest first.
describe('the end of fatura serve', { concurrency: 6 }, () => {
  it('a connection that never ends is cut off, and idle ones keep nothing up', async t => {
    const cli = await createCli(t)
    await cli.load({ ...makeInvoice({ id: 'in_1' }), lines: makeHugeLines() })
    const token = await cli.createToken()
    const end = async (isStuck: boolean) => {
      const api = await cli.serve([], { env: { SHUTDOWN_DELAY: '1s' } })
      const socket = connect(api.port, '127.0.0.1')
      socket.on('error', () => {})
      t.after(() => socket.destroy())
      await once(socket, 'connect')
      // Its answer is never read.
      if (isStuck) socket.write(`GET ${detail} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`)
      await sleep(500)
      const agent = new Agent({ keepAlive: true })
      t.after(() => agent.destroy())
      assert.equal((await ask(`${api.address}/live`, '', agent)).status, 200)
      const asked = performance.now()
      const { code } = await api.stop('SIGTERM')
      const took = performance.now() - asked
      assert.equal(code, 0)
      const least = isStuck ? 9_400 : 2_000
      assert.ok(took >= least, `took ${took} ms`)
      // Requests in flight are given longer than idle connections.
      assertWithin(took, 1_000 + (isStuck ? endWithin : 8_000))
    }
    await Promise.all([end(true), end(false)])
  })

  for (const command of ['serve', 'up'] as const)
    it(`${command} turns /ready first, and serves all who come until the delay is over`, async t => {
      const cli = await createCli(t)
      const token = await load(cli)
      const delay = Math.ceil(onThisMachine(4_000) / 1_000)
      const program = cli.start([command, '--port', '0', '--shutdown-delay', `${delay}s`])
      const [, address = ''] = await program.waitFor(/"address":"(http:[^"]+)","msg":"listening"/)
      const api = serving(program, address)
      const agent = new Agent({ keepAlive: true })
      t.after(() => agent.destroy())
      const first = await ask(address + list, token, agent)
      assert.deepEqual([first.status, first.headers.connection], [200, 'keep-alive'])

      const asked = performance.now()
      api.child.kill('SIGTERM')
      await eventually('/ready turns', async () => (await api.get('/ready')).status === 503)
      const ready = await api.get('/ready')
      assert.equal(ready.json.error.code, 'unavailable')
      assert.equal(ready.headers.get('retry-after'), '1')
      // Over the connection that was open, and over new ones.
      for (const through of [agent, new Agent({ keepAlive: true })]) {
        const { status, headers } = await ask(address + list, token, through)
        assert.deepEqual([status, headers.connection], [200, 'close'])
        assert.equal(Object.keys(through.freeSockets).length, 0)
      }
      assert.equal((await api.get('/live')).status, 200)
      assert.ok(performance.now() - asked < delay * 1_000 - 500, 'this machine is too slow to tell')
      const { code, stdout } = await api.exited
      const took = performance.now() - asked
      assert.equal(code, 0)
      assert.ok(took >= delay * 1_000, `took ${took} ms`)
      assertWithin(took, delay * 1_000 + endWithin)
      assert.match(stdout, new RegExp(`"delay_ms":${delay}000,"msg":"stopping"`))
      assert.match(stdout, /"msg":"stopped"}\n$/)
    })

  it('at SIGTERM under traffic loses no request, of idle, busy and new connections, until nobody can connect', async t => {
    await endAgainAndAgain(t, { atLeast: campaign(200, 600) })
  })

  it('at SIGTERM with workers loses none either, while some are still starting', async t => {
    const prepare: Round['prepare'] = (_api, { samples }) =>
      eventually('one serves, the other is on its way', () => samples.length > 20)
    await endAgainAndAgain(t, { args: workers, prepare })
  })

  it('a worker that is renewed alone loses none, and /ready stays as it is; nor does a signal to every process of it', async t => {
    const signal = (api: Serving) => {
      // The first was renewed, and is gone.
      for (const pid of [api.pid, ...pidsOf(api).slice(1)]) process.kill(pid, 'SIGTERM')
    }
    await endAgainAndAgain(t, { args: workers, prepare: renewOne, signal })
  })

  for (const args of [[], workers])
    it(`clients that connect while ${['serve', ...args].join(' ')} stands still at its end are answered`, async t => {
      const cli = await createCli(t)
      await load(cli)
      const api = await cli.serve(args, { env: { SHUTDOWN_DELAY: '0s' } })
      if (args === workers) await bothServe(api)
      api.child.kill('SIGTERM')
      // Then it looks whether anyone still connects.
      await sleep(50)
      api.child.kill('SIGSTOP')
      const asked = Array.from({ length: 20 }, () => ask(`${api.address}/live`, ''))
      await sleep(1_500)
      api.child.kill('SIGCONT')
      const answers = (await Promise.all(asked)).map(({ status, text }) => (status === 0 ? text : status))
      // A machine that is too slow to stop it in time refuses all.
      const lost = answers.filter(answer => answer !== 200 && !String(answer).includes('ECONNREFUSED'))
      assert.deepEqual(lost, [])
      assert.equal((await api.exited).code, 0)
    })

  for (const args of [[], workers])
    it(`a PDF in flight comes whole from ${['serve', ...args].join(' ')}`, async t => {
      const pdf = makePdf(400_000)
      const files = await startUpstream(t, async (_request, response) => {
        response.writeHead(200, { 'content-length': pdf.length })
        // Longer than the delay.
        for (let sent = 0; sent < pdf.length; sent += 10_000) {
          response.write(pdf.subarray(sent, sent + 10_000))
          await sleep(75)
        }
        response.end()
      })
      const upstream = await startInvoiceXpress(t, answer({ output: { pdfUrl: `${files.origin}/a.pdf` } }))
      const cli = await createCli(t)
      await cli.load(makeInvoice({ id: 'in_1', ...withDocument }))
      const token = await cli.createToken()
      const api = await cli.serve(args, {
        env: {
          SHUTDOWN_DELAY: '1s',
          INVOICEXPRESS_API_KEY: apiKey,
          INVOICEXPRESS_API_BASE: upstream.origin,
          INVOICEXPRESS_PDF_ORIGINS: files.origin,
        },
      })
      const headers = { authorization: `Bearer ${token}` }
      const [incoming]: [IncomingMessage] = (await once(
        httpGet(`${api.address}${detail}/ix/download`, { headers }),
        'response',
      )) as [IncomingMessage]
      assert.equal(incoming.statusCode, 200)
      const asked = performance.now()
      api.child.kill('SIGTERM')
      assert.ok((await buffer(incoming)).equals(pdf))
      assert.ok(performance.now() - asked > 1_000, 'it was in flight when nobody could connect any more')
      assert.equal((await api.exited).code, 0)
    })

  for (const args of [[], workers])
    it(`at SIGINT ${['serve', ...args].join(' ')} does not wait, and still answers what comes over open connections`, async t => {
      const cli = await createCli(t)
      const token = await load(cli)
      const api = await cli.serve(['--rate-limit', 'off', ...args], { env: { SHUTDOWN_DELAY: '60s' } })
      const { address } = api
      // Shorter than the grace alone.
      const traffic = startTraffic({
        address,
        paths,
        token,
        busy: 8,
        idle: 12,
        fresh: 0,
        idleFor: [100, 500],
      })
      await sleep(700)
      await eventually('the traffic runs', () => traffic.samples.length >= 60)
      await traffic.divert()
      const asked = performance.now()
      const { code } = await api.stop('SIGINT')
      const took = performance.now() - asked
      await traffic.ended
      const lost = traffic.samples.filter(({ status }) => status !== 200)
      assert.deepEqual(lost, [], `of ${traffic.samples.length}`)
      assert.equal(code, 0)
      assertWithin(took, 8_000)
    })

  for (const args of [[], workers])
    it(`a second signal ends ${['serve', ...args].join(' ')} at once, whatever the delay`, async t => {
      const cli = await createCli(t)
      await load(cli)
      const api = await cli.serve(args, { env: { SHUTDOWN_DELAY: '60s' } })
      api.child.kill('SIGTERM')
      await eventually('/ready turns', async () => (await api.get('/ready')).status === 503)
      const asked = performance.now()
      const { code } = await api.stop('SIGTERM')
      assert.equal(code, 1)
      assertWithin(performance.now() - asked, 20_000)
      await eventually('nobody is left', () => isRefused(api.port))
    })

  it('refuses a delay that is none', async t => {
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
