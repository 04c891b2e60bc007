/** The API reference in a real browser: it works under its policy, and asks nobody else for anything. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { wholeFile } from '../support/clients/billing-page.ts'
import { lacksChromium, startBrowser, watchPage } from '../support/clients/browser.ts'
import { engines } from '../support/databases/engines.ts'
import { makeRecord } from '../support/worlds/records.ts'
import { startService } from '../support/worlds/service.ts'

const [engine] = engines
assert.ok(engine !== undefined)
const service = await startService(wholeFile, engine, { web: true, records: [makeRecord({ id: 'in_1' })] })
const browser = lacksChromium ? null : await startBrowser(wholeFile)

async function open(path: string, viewport: { width: number; height: number }) {
  assert.ok(browser !== null)
  const page = await browser.newPage({ viewport })
  const watched = await watchPage(page)
  await page.goto(service.address + path)
  return { page, watched }
}

// Each has a page of its own, and mostly waits for it.
describe('the API reference', { concurrency: 3 }, () => {
  test('shows every operation at /docs, sends a request, and uses no other host', {
    timeout: 600_000,
    skip: lacksChromium,
  }, async () => {
    const { page, watched } = await open('/docs#tag/operations/GET/live', {
      width: 1280,
      height: 900,
    })
    for (const summary of [
      'List customer invoices',
      'Retrieve invoice details',
      'Check that the process can serve requests',
    ])
      await page.getByText(summary).first().waitFor()
    await page.getByRole('button', { name: /^Test Request.*\/live/ }).click()
    await page.getByRole('button', { name: /^Send/ }).first().click()
    await page.getByText('200 OK').waitFor()
    if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/docs.png` })
    const asked = new Set(watched.requests.map(url => new URL(url)))
    for (const { origin } of asked) assert.equal(origin, service.address)
    const paths = [...asked].map(({ pathname }) => pathname.replace(/-\w+\.js$/, '.js')).sort()
    assert.deepEqual(paths, ['/api/v1/openapi.json', '/docs', '/docs/scalar.js', '/docs/start.js', '/live'])
    assert.deepEqual(watched.problems, [])
  })

  test('can request a list and a detail from /docs with the access in the link, without filters', {
    timeout: 600_000,
    skip: lacksChromium,
  }, async () => {
    const token = await service.createToken()
    const access = `#t=${token}&c=${makeRecord().invoice.customer_id}`
    const { page, watched } = await open(`/docs${access}`, { width: 1280, height: 900 })
    for (const [operation, name, path] of [
      ['List customer invoices', /^Test Request.*\/invoices\)/, '/api/v1/client/cus_ana/invoices'],
      [
        'Retrieve invoice details',
        /^Test Request.*\/invoice\/\{invoiceId\}\)/,
        '/api/v1/client/cus_ana/invoice/in_1',
      ],
    ] as const) {
      await page.getByRole('link', { name: operation }).first().click()
      await page.getByRole('button', { name }).click()
      await page.getByRole('button', { name: /^Send/ }).first().click()
      await page.getByText('200 OK').waitFor()
      if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/try.png` })
      assert.equal(watched.requests.at(-1), service.address + path)
      await page.keyboard.press('Escape')
    }
    assert.ok(!page.url().includes(token))
    // The first operation is the list, and the introduction begins with a request that works.
    const operations = await page
      .getByRole('link', { name: /^(List|Retrieve|Download|Is|Can|This) / })
      .allInnerTexts()
    assert.match(operations[0] ?? '', /^List customer invoices/)
    const introduced = await page.locator('.introduction-description, .markdown').first().innerText()
    const [, bearer, address] = /^curl -s -H "Authorization: (.+)" "(.+)"$/m.exec(introduced) ?? []
    assert.equal(introduced.trim().indexOf('curl'), 0, introduced.slice(0, 200))
    const answer = await fetch(address ?? '', { headers: { authorization: bearer ?? '' } })
    assert.equal(((await answer.json()) as { total: number }).total, 1)
    if (process.env.SCREENSHOTS) {
      await page.goto(`${service.address}/docs${access}`)
      await page.getByText('curl').first().waitFor()
      await page.screenshot({ path: `${process.env.SCREENSHOTS}/introduction.png` })
    }
    for (const code of ['invalid_token', 'invoice_not_found', 'rate_limited'])
      await page.getByRole('row', { name: code }).waitFor()
    assert.deepEqual(watched.problems, [])
  })
})
