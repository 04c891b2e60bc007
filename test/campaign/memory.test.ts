/** Memory of `fatura serve`: it does not grow with requests, nor with the size of a PDF. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { reportFigure } from '../support/checks/campaign.ts'
import { createCli } from '../support/clients/cli.ts'
import { startLoad } from '../support/clients/load.ts'
import { readRss } from '../support/clients/raw-client.ts'
import { answer, apiKey, startInvoiceXpress } from '../support/upstreams/invoicexpress-upstream.ts'
import { makePdf, startUpstream } from '../support/upstreams/pdf-upstream.ts'
import { makeInvoice, makeLine, withDocument } from '../support/worlds/records.ts'

const megabyte = 1024 * 1024
/** In milliseconds: until it has what it keeps, and then as long again, twice. */
const thirdMs = 40_000

it('memory does not grow with requests or with PDFs of 25 MB', async t => {
  const pdf = makePdf(25 * megabyte - 1)
  let sent = makePdf(1_000)
  const files = await startUpstream(t, (_request, response) => void response.end(sent))
  const upstream = await startInvoiceXpress(t, answer({ output: { pdfUrl: `${files.origin}/a.pdf` } }))
  const cli = await createCli(t)
  const invoices = Array.from({ length: 300 }, (_, n) => ({
    ...makeInvoice({ id: `in_${n}`, customer_id: `cus_${n % 30}`, ...(n === 0 && withDocument) }),
    lines: [makeLine()],
  }))
  await cli.load(...invoices)
  const token = await cli.createToken()
  const api = await cli.serve(['--rate-limit', 'off'], {
    env: {
      // Garbage is collected before it looks like growth, new objects included.
      NODE_OPTIONS: '--max-old-space-size=40 --max-semi-space-size=2',
      INVOICEXPRESS_API_KEY: apiKey,
      INVOICEXPRESS_API_BASE: upstream.origin,
      INVOICEXPRESS_PDF_ORIGINS: files.origin,
    },
  })
  const paths = invoices.flatMap(({ id, customer_id }) => {
    const list = `/api/v1/client/${customer_id}/invoices`
    return [
      list,
      `${list}?q=lima`,
      `${list}?status=paid&page_size=50`,
      `/api/v1/client/${customer_id}/invoice/${id}`,
    ]
  })
  const load = startLoad({
    ...{ address: api.address, paths, token },
    ...{ loops: 8, pause: 1, atMost: 4 * thirdMs },
  })
  t.after(() => load.stop())
  const measure = async () => {
    const sizes: number[] = []
    for (const until = performance.now() + thirdMs; performance.now() < until; ) {
      sizes.push(readRss(api.pid) / megabyte)
      await sleep(100)
    }
    return sizes.sort((a, b) => a - b)[Math.floor(sizes.length / 2)] as number
  }
  await measure()
  const [before, after] = [await measure(), await measure()]
  await load.stop()
  for (const { status, text } of load.samples) assert.equal(status, 200, text)

  const download = async () => {
    const response = await fetch(`${api.address}/api/v1/client/cus_0/invoice/in_0/ix/download`, {
      headers: { authorization: `Bearer ${token}` },
    })
    assert.equal((await response.arrayBuffer()).byteLength, sent.length)
  }
  await download()
  sent = pdf
  let most = 0
  const watch = setInterval(() => {
    most = Math.max(most, readRss(api.pid))
  }, 5)
  t.after(() => clearInterval(watch))
  const resting = readRss(api.pid) / megabyte
  const downloads = 20
  for (let count = 0; count < downloads; count++) await download()
  clearInterval(watch)
  const added = most / megabyte - resting
  reportFigure(
    t,
    'R10',
    `${before.toFixed(0)} MB, and ${after.toFixed(0)} MB after ${load.samples.length} requests; ${downloads} PDFs of 25 MB add ${added.toFixed(0)} MB`,
  )
  assert.ok(after - before <= 16, `grew from ${before} to ${after} MB`)
  assert.ok(added <= 32, `a PDF adds ${added} MB`)
})
