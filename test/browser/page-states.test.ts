/** Every state of the billing page in which there is nothing to show has a way out: each is walked, in a real browser. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Page, Route } from 'playwright-core'
import { exampleDocument } from '../../src/http/openapi/examples.ts'
import { SourceError } from '../../src/sources/source.ts'
import { bothSystems, makeHistory, pdf, startPages } from '../support/clients/billing-page.ts'
import { lacksChromium } from '../support/clients/browser.ts'
import { eventually } from '../support/clients/cli.ts'
import { makeRecord, withDocument } from '../support/worlds/records.ts'

/** Number of requests for which the certified document's PDF is still being made. */
let notReady = 0
const documents = {
  async openPdf(id: number) {
    if (notReady-- > 0) throw new SourceError('not_ready', 'being made', { retryAfter: 1 })
    return pdf(`document ${id}`)
  },
}

const { service, open, everything } = await startPages({
  ...bothSystems,
  documents,
  records: [
    ...makeHistory(12),
    makeRecord({ id: 'in_bob', customer_id: 'cus_bob', number: 'B-1', ...withDocument }),
    {
      ...makeRecord({
        id: 'in_ixdraft',
        customer_id: 'cus_bob',
        number: 'B-2',
        ...withDocument,
        ix_status: 'draft',
      }),
      document: {
        ...exampleDocument,
        number: null,
        atcud: null,
        status: 'draft',
        qr_path: null,
        related: [],
      },
    },
    makeRecord({ id: 'in_draft', customer_id: 'cus_bob', number: null, status: 'draft' }),
  ],
})
const options = { timeout: 600_000, skip: lacksChromium }
const rows = 'table.invoices tbody tr'
const lists = /\/invoices(\?|$)/

/** An answer that is no success is written to the console by the browser itself. */
const failedLoad = /Failed to load resource/

// Each has a page of its own, and mostly waits for it.
describe('the billing page in an unusual state', { concurrency: 3 }, () => {
  test('explains that there are no invoices, and shows a new invoice without a reload', options, async t => {
    const { page, assertClean } = await open(t, {
      customer: 'cus_empty',
      prepare: page => page.clock.install(),
    })
    await page.getByRole('heading', { name: 'No invoices yet' }).waitFor()
    await page.getByRole('button', { name: 'Try again' }).click()
    await service.save(makeRecord({ id: 'in_first', customer_id: 'cus_empty', number: 'E-1' }))
    await page.clock.fastForward(10_100)
    await page.getByRole('link', { name: 'E-1' }).waitFor()
    assertClean()
  })

  test('offers to clear the filters when no invoice matches', options, async t => {
    const { page, assertClean } = await open(t, { path: '/?q=zzz&date_from=2026-02-01&date_to=2026-01-01' })
    await page.getByRole('heading', { name: 'No invoice matches' }).waitFor()
    await page.getByText('The first day is after the last').waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).last().click()
    await page.locator(rows).first().waitFor()
    assertClean()
  })

  test('explains that a search has too many words, and offers to clear the search', options, async t => {
    const words = Array.from({ length: 11 }, (_, index) => `w${index}x`).join('+')
    const { page, assertClean } = await open(t, { path: `/?q=${words}` })
    await page.getByRole('alert').getByRole('heading', { name: 'This search is too long' }).waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await page.locator(rows).first().waitFor()
    assertClean(failedLoad)
  })

  test('explains slow loading after a while, with a button to try again', options, async t => {
    let isHeld = true
    const held: Route[] = []
    const { page, assertClean } = await open(t, {
      async prepare(page) {
        await page.clock.install()
        await page.route(lists, route => (isHeld ? void held.push(route) : route.continue()))
      },
    })
    await page.getByText('Loading invoices…').waitFor()
    await page.clock.fastForward(6_100)
    await page.getByText('This takes longer than usual.').waitFor()
    isHeld = false
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.locator(rows).first().waitFor()
    await Promise.all(held.map(route => route.abort()))
    assertClean(failedLoad)
  })

  for (const [state, title, given] of [
    ['expired', 'Your access has expired', { expires_at: Date.now() - 1_000 }],
    ['revoked', 'Your access has ended', { revoked_at: Date.now() }],
    ['for another customer', 'This access is for somebody else', { customers: ['cus_bob'] }],
  ] as const)
    test(
      `explains that the access is ${state}, and opens the invoices with another link`,
      options,
      async t => {
        const token = await service.createToken(given)
        const { page, assertClean } = await open(t, { token })
        await page.getByRole('alert').getByRole('heading', { name: title }).waitFor()
        assert.equal(await page.locator(rows).count(), 0)
        assert.equal(await page.getByRole('textbox').count(), 0, 'nobody is asked for an ID')
        // Another link, opened in the same tab, is all it takes.
        await page.goto(`${service.address}/#t=${everything}&c=cus_ana`)
        await page.locator(rows).first().waitFor()
        assert.equal(await page.evaluate('location.href.includes("fat_")'), false)
        assertClean(failedLoad)
      },
    )

  test('hides the invoices as soon as the access is revoked', options, async t => {
    const token = await service.createToken()
    const { page, assertClean } = await open(t, { token, prepare: page => page.clock.install() })
    await page.locator(rows).first().waitFor()
    const id = token.slice(0, 16)
    await service.store.revokeToken(id, Date.now())
    await eventually('it is refused', async () => (await service.list('', { token })).status === 401)
    await page.clock.fastForward(10_100)
    await page.getByRole('heading', { name: 'Your access has ended' }).waitFor()
    assert.equal(await page.locator(rows).count(), 0)
    assertClean(failedLoad)
  })

  test('counts down after a rate limit, and continues automatically', options, async t => {
    const { page, assertClean } = await open(t, {
      async prepare(page) {
        await page.clock.install()
        await failOnce(429, { 'retry-after': '60' }, { code: 'rate_limited', message: 'Too many.' })(page)
      },
    })
    await page.getByRole('alert').getByRole('heading', { name: 'Too many requests at once' }).waitFor()
    await page.getByText(/Trying again by itself in \d+ s\./).waitFor()
    await page.clock.fastForward(60_000)
    await page.locator(rows).first().waitFor()
    assert.equal(await page.getByRole('alert').count(), 0)
    assertClean(failedLoad)
  })

  test(
    'keeps the loaded invoices when the connection breaks, and continues when it is back',
    options,
    async t => {
      await service.save(makeRecord({ id: 'in_off', customer_id: 'cus_off' }))
      const { page, watched, assertClean } = await open(t, {
        customer: 'cus_off',
        prepare: page => page.clock.install(),
      })
      await page.locator(rows).first().waitFor()
      await eventually('it waits for a change', () => watched.requests.some(url => /[?&]after=/.test(url)))
      await page.context().setOffline(true)
      await service.save(makeRecord({ id: 'in_later', customer_id: 'cus_off' }))
      await page.getByRole('alert').getByRole('heading', { name: 'No connection' }).waitFor()
      assert.equal(await page.locator(rows).count(), 1)
      await page.context().setOffline(false)
      await page.getByRole('alert').waitFor({ state: 'detached' })
      await page.locator(rows).nth(1).waitFor()
      assertClean(failedLoad)
    },
  )

  test('does not speak of earlier invoices when there is no connection from the start', options, async t => {
    let isOffline = true
    const { page, assertClean } = await open(t, {
      async prepare(page) {
        await page.clock.install()
        await page.route(lists, route => (isOffline ? route.abort('internetdisconnected') : route.continue()))
      },
    })
    const notice = page.getByRole('alert').filter({ hasText: 'No connection' })
    await notice.getByText('The invoices appear by themselves as soon as there is a connection.').waitFor()
    assert.equal(await page.getByText('What you see was loaded before').count(), 0)
    isOffline = false
    await page.clock.fastForward(60_000)
    await page.locator(rows).first().waitFor()
    assertClean(failedLoad)
  })

  test('shows a reference and a button to try again after a fault of the service', options, async t => {
    const { page, assertClean } = await open(t, {
      prepare: failOnce(500, { 'request-id': 'req_1' }, { code: 'internal', message: 'A fault.' }),
    })
    await page.getByText('Reference for support: req_1').waitFor()
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.locator(rows).first().waitFor()
    assertClean(failedLoad)
  })

  test('leads back to the list when an invoice is missing', options, async t => {
    const { page, assertClean } = await open(t)
    for (const id of ['in_none', 'nonsense']) {
      await page.goto(`${service.address}/?invoice=${id}`)
      await page.getByRole('heading', { name: 'There is no such invoice' }).waitFor()
      await page.getByRole('button', { name: 'All invoices' }).click()
      await page.locator(rows).first().waitFor()
    }
    assertClean(failedLoad)
  })

  test('requests an unfinished PDF again until the PDF is ready or the reader cancels', options, async t => {
    const { page, assertClean } = await open(t, { customer: 'cus_bob', path: '/?invoice=in_bob' })
    const button = page.getByRole('button', { name: 'Invoice (PDF) B-1' })
    notReady = Number.POSITIVE_INFINITY
    await button.click()
    await page.getByText(/The PDF is still being made\. Trying again by itself in \d s\./).waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await button.waitFor()
    notReady = 1
    const arrived = page.waitForEvent('download')
    await button.click()
    assert.equal((await arrived).suggestedFilename(), 'B-1 in_bob.pdf')
    assert.equal(notReady, -1, 'asked for twice')
    await page.getByText('Saved as B-1 in_bob.pdf.').waitFor()
    assertClean(failedLoad)
  })

  test('shows no button for a document that is missing or a draft', options, async t => {
    const { page, assertClean } = await open(t, { customer: 'cus_bob', path: '/?invoice=in_ixdraft' })
    await page.locator('.detail header').getByText('Being issued').waitFor()
    assert.equal(await page.getByRole('button', { name: /Invoice \(PDF\)/ }).count(), 0)
    await page.goto(`${service.address}/?invoice=in_draft`)
    await page.getByText('The lines are not available right now.').waitFor()
    assert.equal(await page.getByRole('button', { name: /PDF|Stripe/ }).count(), 0)
    assertClean()
  })

  test(
    'tells a reader without access to open the received link, and does not ask for an ID',
    options,
    async t => {
      const { page, assertClean } = await open(t, { locale: 'pt-PT' })
      await page.locator(rows).first().waitFor()
      await page.getByRole('button', { name: 'Sair' }).click()
      const lead = page.getByText('Abra a ligação que recebeu')
      await lead.waitFor()
      await page.reload()
      await lead.waitFor()
      assert.equal(await page.getByRole('textbox').count(), 0)
      assertClean()
    },
  )
})

/** The first request for a list fails; the others reach the service. */
function failOnce(status: number, headers: Record<string, string>, error: object) {
  return (page: Page) =>
    page.route(
      lists,
      route =>
        route.fulfill({
          status,
          headers: { ...headers, 'content-type': 'application/json' },
          body: JSON.stringify({ error }),
        }),
      { times: 1 },
    )
}
