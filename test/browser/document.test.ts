/** The certified document on the page: printed number, ATCUD, QR code, related documents, and what is owed. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { createQrImage } from '../../sandbox/invoicexpress/qr-image.ts'
import { exampleDocument } from '../../src/http/openapi/examples.ts'
import { qrPath } from '../../src/invoice.ts'
import { bothSystems, startPages } from '../support/billing-page.ts'
import { lacksChromium } from '../support/browser.ts'
import { makeLine, makeRecord, withDocument } from '../support/records.ts'

const records = [
  {
    ...makeRecord({ id: 'in_1', number: 'FT-1', ...withDocument, status: 'open' }, [makeLine()]),
    document: { ...exampleDocument, qr_path: qrPath('cus_ana', 'in_1') },
  },
]
const openQr = async () => ({
  body: Readable.from([createQrImage('ABCD1234-123')]),
  size: null,
  type: 'image/png',
})
const documents = { ...bothSystems.documents, openQr }
const options = { timeout: 180_000, skip: lacksChromium }

test(
  'number, ATCUD, QR code and related documents stand in the detail, in both languages',
  options,
  async t => {
    const { open } = await startPages({ ...bothSystems, documents, records })
    const { page, assertClean } = await open(t)
    // A certified credit note stands beside what is to be paid: it is not taken off.
    await page.getByText('To pay: €123.00 in 1 invoice').waitFor()
    await page.getByText('Credit: €11.07').waitFor()
    for (const [locale, width, words] of [
      ['en-GB', 1_200, ['Invoice-receipt FR A/123', 'Credit note NC A/4 · 5 Mar 2026 · €11.07']],
      ['pt-PT', 390, ['Fatura-recibo FR A/123', 'Nota de crédito NC A/4 · 05/03/2026 · 11,07']],
    ] as const) {
      const visit = { path: '/?invoice=in_1', locale, viewport: { width, height: 900 } }
      const { page: detail, assertClean } = await open(t, visit)
      const certified = detail.locator('.certified')
      await detail.locator('img.qr').waitFor()
      const text = (await certified.textContent()) ?? ''
      for (const word of [...words, ' · ATCUD ABCD1234-123'])
        assert.ok(text.replaceAll('\u00a0', ' ').includes(word), text)
      assert.equal(await detail.evaluate(`document.querySelector('img.qr').naturalWidth`), 140)
      assert.equal(await detail.evaluate('document.documentElement.scrollWidth <= innerWidth'), true)
      if (process.env.SCREENSHOTS)
        await detail.screenshot({ path: `${process.env.SCREENSHOTS}/document-${width}.png`, fullPage: true })
      assertClean()
    }
    assertClean()
  },
)
