/** The end of a running service under traffic: no request is lost, again and again, and it ends in time. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get as httpGet } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { reportFigure } from '../support/checks/campaign.ts'
import { type Cli, createCli, eventually, isRefused } from '../support/clients/cli.ts'
import { ask } from '../support/clients/load.ts'
import { startTraffic } from '../support/clients/traffic.ts'
import { answer, apiKey, startInvoiceXpress } from '../support/upstreams/invoicexpress-upstream.ts'
import { makePdf, startUpstream } from '../support/upstreams/pdf-upstream.ts'
import { makeInvoice, makeLine, withDocument } from '../support/worlds/records.ts'

const list = '/api/v1/client/cus_ana/invoices'
const detail = '/api/v1/client/cus_ana/invoice/in_1'
const paths = [list, detail, '/live']

/** After the delay, everything ends within so long, in milliseconds. */
const endWithin = 10_000

/** With the grace of a second after it, longer than what idle connections and the proxy take. */
const delayMs = 4_000

const shutdowns = 5

/** Asserts that a service ends under traffic without the loss of a request; resolves with how many there were. */
async function endUnderTraffic(cli: Cli, token: string): Promise<number> {
  const api = await cli.serve(['--rate-limit', 'off', '--log-level', 'debug'], {
    env: { SHUTDOWN_DELAY: `${delayMs / 1_000}s` },
  })
  const traffic = startTraffic({
    ...{ address: api.address, paths, token, busy: 6, idle: 20, fresh: 4, stubborn: 8 },
    pauses: { busy: 3, fresh: 10 },
    // Shorter than the delay and the grace after it.
    idleFor: [300, 2_500],
  })
  // Until then every idle connection was used.
  await sleep(1_200)
  await eventually('the traffic runs', () => traffic.samples.length >= 600)
  const asked = performance.now()
  const before = traffic.samples.length
  api.child.kill('SIGTERM')
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
  assert.ok(took >= delayMs && took <= delayMs + endWithin, `took ${took} ms`)
  assert.ok(traffic.samples.length > before, 'it went on serving')
  return traffic.samples.length
}

async function endAgainAndAgain(t: TestContext): Promise<void> {
  const cli = await createCli(t)
  await cli.load({ ...makeInvoice({ id: 'in_1' }), lines: [makeLine()] }, makeInvoice({ id: 'in_2' }))
  const token = await cli.createToken()
  let sent = 0
  for (let turn = 0; turn < shutdowns; turn++) sent += await endUnderTraffic(cli, token)
  reportFigure(t, 'R7', `0 of ${sent} requests lost in ${shutdowns} shutdowns`)
}

describe('fatura serve at SIGTERM', () => {
  it('loses no request under traffic, on idle, busy and new connections', endAgainAndAgain)

  it('answers clients that connect while its process is paused', async t => {
    const cli = await createCli(t)
    await cli.load(makeInvoice({ id: 'in_1' }))
    const api = await cli.serve([], { env: { SHUTDOWN_DELAY: '0s' } })
    api.child.kill('SIGTERM')
    // Then it looks whether anyone still connects.
    await sleep(50)
    api.child.kill('SIGSTOP')
    const asked = Array.from({ length: 20 }, () => ask(`${api.address}/live`, ''))
    await sleep(1_500)
    api.child.kill('SIGCONT')
    const answers = (await Promise.all(asked)).map(({ status, text }) => (status === 0 ? text : status))
    const lost = answers.filter(answer => answer !== 200 && !String(answer).includes('ECONNREFUSED'))
    assert.deepEqual(lost, [])
    assert.equal((await api.exited).code, 0)
  })

  it('sends a running PDF to its end', async t => {
    const pdf = makePdf(400_000)
    let letGo = () => {}
    const files = await startUpstream(t, (_request, response) => {
      response.writeHead(200, { 'content-length': pdf.length })
      response.write(pdf.subarray(0, 10_000))
      letGo = () => void response.end(pdf.subarray(10_000))
    })
    const upstream = await startInvoiceXpress(t, answer({ output: { pdfUrl: `${files.origin}/a.pdf` } }))
    const cli = await createCli(t)
    await cli.load(makeInvoice({ id: 'in_1', ...withDocument }))
    const headers = { authorization: `Bearer ${await cli.createToken()}` }
    const api = await cli.serve([], {
      env: {
        INVOICEXPRESS_API_KEY: apiKey,
        INVOICEXPRESS_API_BASE: upstream.origin,
        INVOICEXPRESS_PDF_ORIGINS: files.origin,
      },
    })
    const [incoming] = await once(httpGet(`${api.address}${detail}/ix/download`, { headers }), 'response')
    assert.equal(incoming.statusCode, 200)
    api.child.kill('SIGTERM')
    await eventually('nobody can connect any more', () => isRefused(api.port))
    letGo()
    assert.ok((await buffer(incoming)).equals(pdf))
    assert.equal((await api.exited).code, 0)
  })
})
