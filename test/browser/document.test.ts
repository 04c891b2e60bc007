/** The certified document on the page: printed number, ATCUD, QR code, related documents, and what is owed. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { createQrImage } from '../../sandbox/invoicexpress/qr-image.ts'
import { qrPath } from '../../src/domain/invoice.ts'
import { exampleDocument } from '../../src/http/openapi/examples.ts'
import { bothSystems, startPages } from '../support/clients/billing-page.ts'
import { lacksChromium } from '../support/clients/browser.ts'
import { makeLine, makeRecord, withDocument } from '../support/worlds/records.ts'

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
/** The drawing beside the image, pixel by pixel. */
const compareQr = `(async () => {
  const bytes = Uint8Array.from(atob('${createQrImage('ABCD1234-123').toString('base64')}'), c => c.charCodeAt(0))
  const image = await createImageBitmap(new Blob([bytes], { type: 'image/png' }))
  const { width, height } = image
  const darkOf = draw => {
    const context = new OffscreenCanvas(width, height).getContext('2d')
    context.fillStyle = '#fff'
    context.fillRect(0, 0, width, height)
    context.fillStyle = '#000'
    draw(context)
    const { data } = context.getImageData(0, 0, width, height)
    return Array.from({ length: width * height }, (_, pixel) => data[pixel * 4] < 128)
  }
  const drawn = document.querySelector('svg.qr path').getAttribute('d')
  const [one, other] = [context => context.drawImage(image, 0, 0), context => context.fill(new Path2D(drawn))].map(darkOf)
  return {
    width: document.querySelector('svg.qr').viewBox.baseVal.width,
    different: one.filter((isDark, pixel) => isDark !== other[pixel]).length,
    isMixed: new Set(one).size === 2,
  }
})()`

const options = { timeout: 600_000, skip: lacksChromium }

test(
  'the detail shows the document’s number, ATCUD, QR code and related documents, in both languages',
  options,
  async t => {
    const { open } = await startPages({ ...bothSystems, documents, records })
    const { page, assertClean } = await open(t)
    // A certified credit note stands beside what is to be paid: it is not taken off.
    await page.locator('.owed', { hasText: 'To pay€123.00' }).waitFor()
    await page.getByText('Credit in your favour: €11.07').waitFor()
    for (const [locale, width, words] of [
      [
        'en-GB',
        1_200,
        [
          'Invoice-receipt FR A/123',
          'Credit note NC A/4 5 Mar 2026 · €11.07',
          'Entity10611',
          'Multibanco reference123 456 789',
        ],
      ],
      ['pt-PT', 390, ['Fatura-recibo FR A/123', 'Nota de crédito NC A/4 05/03/2026 · 11,07']],
    ] as const) {
      const visit = { path: '/?invoice=in_1', locale, viewport: { width, height: 900 } }
      const { page: detail, assertClean } = await open(t, visit)
      const certified = detail.locator('.certified')
      await detail.locator('svg.qr').waitFor()
      const text = (await certified.textContent()) ?? ''
      for (const word of [...words, ' ATCUD ABCD1234-123'])
        assert.ok(text.replaceAll('\u00a0', ' ').includes(word), text)
      assert.deepEqual(await detail.evaluate(compareQr), { width: 140, different: 0, isMixed: true })
      assert.equal(await detail.evaluate('document.documentElement.scrollWidth <= innerWidth'), true)
      if (process.env.SCREENSHOTS)
        await detail.screenshot({ path: `${process.env.SCREENSHOTS}/document-${width}.png`, fullPage: true })
      assertClean()
    }
    assertClean()
  },
)

test('a service without upstream systems shows no button that needs them', options, async t => {
  const { open } = await startPages({ records, downloads: { ix: false, payments: false } })
  for (const path of ['/', '/?invoice=in_1']) {
    const { page, assertClean } = await open(t, { path })
    await page.locator('.invoices, .detail').waitFor()
    assert.deepEqual(await page.getByRole('button', { name: /PDF|Pay|More/ }).allTextContents(), [], path)
    assertClean()
  }
})

test('a row’s menu offers the PDF of an issued credit note, and none of a draft', options, async t => {
  const [issued] = exampleDocument.related ?? []
  const related = [issued, { ...issued, id: 48_378, number: null, status: 'draft' }]
  const record = { ...records[0], document: { ...exampleDocument, related } } as (typeof records)[0]
  const { open } = await startPages({ ...bothSystems, documents, records: [record] })
  const { page, assertClean } = await open(t)
  await page.getByRole('button', { name: 'More' }).click()
  const offered = page.locator('.menu:popover-open').getByRole('button', { name: 'Credit note' })
  await offered.first().waitFor()
  assert.deepEqual(await offered.allTextContents(), ['Credit note NC A/4'])
  assertClean()
})
