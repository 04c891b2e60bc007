/** The SAF-T file of a month from InvoiceXpress: waited for, fetched through the guard, and told apart from failures. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { InvoiceXpressOptions } from '../../../src/sources/invoicexpress/client.ts'
import { openSaftExport } from '../../../src/sources/invoicexpress/saft-export.ts'
import { SourceError, type SourceFailure } from '../../../src/sources/source.ts'
import { answer, apiKey, startInvoiceXpress } from '../../support/upstreams/invoicexpress-upstream.ts'
import { secret, startUpstream } from '../../support/upstreams/pdf-upstream.ts'
import { stopClock, until } from '../../support/worlds/stopped-clock.ts'

const month = '2026-10'
const xml = Buffer.from('<AuditFile/>')

async function fetchAll(
  options: InvoiceXpressOptions,
  waits: number[] = [],
  budgetMs = 60_000,
): Promise<string> {
  const body = await openSaftExport(options, month, seconds => waits.push(seconds), {
    budgetMs,
    deadlineMs: 60_000,
  })
  return Buffer.concat(await Array.fromAsync(body)).toString()
}

async function assertFails(
  t: TestContext,
  script: Parameters<typeof answer>,
  [failure, message]: [SourceFailure, RegExp],
  budgetMs?: number,
): Promise<void> {
  const { options } = await startInvoiceXpress(t, answer(...script))
  stopClock(t)
  await assert.rejects(fetchAll(options, [], budgetMs), error => {
    assert.ok(error instanceof SourceError, String(error))
    assert.equal(error.failure, failure)
    assert.match(error.message, message)
    assert.doesNotMatch(error.message, new RegExp(`${apiKey}|${secret}`))
    return true
  })
}

describe('the SAF-T file of a month at InvoiceXpress', { timeout: 600_000 }, () => {
  test('is requested until it is ready, and passed on unchanged', async t => {
    const files = await startUpstream(t, (_request, response) => void response.end(xml))
    const upstream = await startInvoiceXpress(
      t,
      answer({}, 202),
      answer({ url: `${files.origin}/${secret}.xml` }),
    )
    const waits: number[] = []
    const options = { ...upstream.options, pdfOrigins: [files.origin] }
    const clock = stopClock(t)
    const fetched = fetchAll(options, waits)
    await until(() => waits.length === 1)
    await clock.pass(999)
    assert.equal(upstream.requests.length, 1)
    await clock.pass(1)
    assert.equal(await fetched, xml.toString())
    assert.deepEqual(waits, [0])
    const [asked = ''] = upstream.requests.map(({ url }) => url)
    assert.deepEqual(Object.fromEntries(new URL(asked, files.origin).searchParams), {
      ...{ year: '2026', years: '2026', month: '10' },
      api_key: apiKey,
    })
  })

  test('is waited for only until a time limit', t =>
    assertFails(
      t,
      [{}, 202],
      ['not_ready', /^InvoiceXpress is still making the SAF-T file of 2026-10 after 0 s/],
      500,
    ))

  test('is refused when it comes from another origin', t =>
    assertFails(
      t,
      [{ url: `http://192.0.2.1/${secret}.xml` }],
      ['failed', /^The SAF-T file is at an origin that INVOICEXPRESS_PDF_ORIGINS does not allow\.$/],
    ))

  test('is missing for a month without documents', t =>
    assertFails(
      t,
      [{ message: 'Nenhum documento' }],
      ['missing', /has no SAF-T file of 2026-10, because it found no documents$/],
    ))

  test('needs a valid key', t =>
    assertFails(t, [{ errors: {} }, 401], ['failed', /^InvoiceXpress refused the key/]))

  test('is refused when it is incomplete', async t => {
    const files = await startUpstream(t, (_request, response) => {
      response.writeHead(200, { 'content-length': 1_000 }).write(xml, () => response.destroy())
    })
    const { options } = await startInvoiceXpress(t, answer({ url: `${files.origin}/${secret}.xml` }))
    await assert.rejects(fetchAll({ ...options, pdfOrigins: [files.origin] }), (error: SourceError) =>
      /^The SAF-T file could not be fetched/.test(error.message),
    )
  })
})
