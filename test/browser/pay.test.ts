/** Paying: the button opens the platform's page in a new tab, and the payment shows by itself. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startStripeSandbox } from '../../sandbox/stripe/server.ts'
import { browser, startPages } from '../support/clients/billing-page.ts'
import { lacksChromium } from '../support/clients/browser.ts'
import { createCli, eventually, get } from '../support/clients/cli.ts'
import { makeRecord } from '../support/worlds/records.ts'
import { recently } from '../support/worlds/sync.ts'

const open = { status: 'open', number: 'FT-1' } as const
const records = [makeRecord({ id: 'in_1', ...open }), makeRecord({ id: 'in_2', status: 'paid' })]
let address: string | null = null
const payments = {
  fetchLines: async () => null,
  openPdf: () => assert.fail(),
  findPaymentPage: async () => address,
}
const options = { timeout: 600_000, skip: lacksChromium }

describe('the payment button', () => {
  test('appears for an open invoice in the list and the detail, in both languages', options, async t => {
    const pages = await startPages({ records, payments })
    // Stands for Stripe's: no other host is asked.
    address = `${pages.service.address}/llms.txt`
    const { page, assertClean } = await pages.open(t)
    const button = page.locator('.invoices').getByRole('button', { name: 'Pay invoice FT-1, in a new tab' })
    await button.waitFor()
    assert.deepEqual(
      [await page.locator('.invoices .pay').count(), await page.locator('.owed .pay').count()],
      [1, 1],
    )
    const opened = page.waitForEvent('popup')
    await button.click()
    const tab = await opened
    await tab.waitForURL(address)
    assert.equal(await tab.evaluate('opener'), null)
    assert.equal(new URL(page.url()).search, '', 'the row was not opened')
    address = null
    await button.click()
    await page.getByText('There is nothing to pay any more.').waitFor()
    const { page: detail } = await pages.open(t, { path: '/?invoice=in_1', locale: 'pt-PT' })
    await detail.getByRole('button', { name: 'Pagar a fatura FT-1, num novo separador' }).waitFor()
    assertClean(/409/)
  })

  test('is not shown with PAY=off, in the page and in the element', options, async t => {
    const { service, open, everything } = await startPages({ records, payments, pay: false })
    const { page, assertClean } = await open(t)
    await page.locator('.owed', { hasText: 'To pay€123.00' }).waitFor()
    assert.equal(await page.locator('.pay').count(), 0)
    await page.evaluate(`(async () => {
      await import('/fatura-invoices.js')
      const element = document.createElement('fatura-invoices')
      element.setAttribute('customer', 'cus_ana')
      element.token = ${JSON.stringify(everything)}
      document.body.append(element)
    })()`)
    await page.locator('fatura-invoices .found').waitFor()
    assert.equal(await page.locator('fatura-invoices .pay').count(), 0)
    assert.ok((await service.get('/fatura-invoices.js', { token: null })).text.startsWith('globalThis.'))
    assertClean()
  })

  test('is replaced by the state paid after a payment on the platform’s page', options, async t => {
    const sandbox = await startStripeSandbox({ now: recently(), seed: 3, invoices: 60 })
    t.after(() => sandbox.close())
    const invoice = [...sandbox.account.invoices.values()].find(
      ({ customer, status }) => typeof customer === 'string' && status === 'open',
    )
    const cli = await createCli(t)
    const up = cli.start(['up', '--port', '0'], {
      env: { STRIPE_API_KEY: 'sk_test_sandbox', STRIPE_API_BASE: sandbox.address },
    })
    const [address] = await up.waitFor(/http:\/\/127\.0\.0\.1:\d+/)
    const customer = String(invoice?.customer)
    const token = await cli.createToken()
    const list = `${address}/api/v1/client/${customer}/invoices?q=${invoice?.id}`
    await eventually('the account is listed', async () => (await get(list, token)).json.total === 1)

    const context = await (await browser()).newContext({ locale: 'en-GB' })
    t.after(() => context.close())
    const page = await context.newPage()
    await page.goto(`${address}/?q=${invoice?.id}#t=${token}&c=${customer}`)
    const opened = page.waitForEvent('popup')
    await page
      .locator('.invoices')
      .getByRole('button', { name: `Pay invoice ${invoice?.number}, in a new tab` })
      .click()
    const tab = await opened
    await tab.getByRole('button', { name: 'Pay' }).click()
    await tab.getByText('This invoice is paid.').waitFor()
    await page.getByRole('cell', { name: 'Paid' }).waitFor({ timeout: 600_000 })
    assert.equal(await page.locator('.invoices .pay').count(), 0)
  })
})
