/** Downloads for customers and their accountants: a table, the PDFs, a statement. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { StatementEntry, StatementSum } from '../../src/sdk/client.ts'
import { SourceError } from '../../src/sources/source.ts'
import { openWriteStore } from '../../src/store/engines.ts'
import { bothSystems, makeHistory, pdf, startPages } from '../support/clients/billing-page.ts'
import { lacksChromium } from '../support/clients/browser.ts'
import { createCli } from '../support/clients/cli.ts'
import { makeRecord } from '../support/worlds/records.ts'

const history = makeHistory(123)
const payments = {
  ...bothSystems.payments,
  async openPdf(id: string) {
    if (id === 'in_0122' || id === 'in_gone') throw new SourceError('missing', 'not there')
    return pdf(`payments ${id}`)
  },
}
const hostile = makeRecord({
  id: 'in_hostile',
  customer_id: 'cus_hostile',
  number: '=1+1',
  display_name: '@cmd; "quoted", é',
  total_cents: -1_050,
  currency: 'eur',
})
/** Tax in the prices; with shipping; with a credit. */
const taxes = [
  { subtotal_cents: 46_935, discount_cents: 6_806, tax_cents: 7_504, total_cents: 40_129 },
  { subtotal_cents: 10_000, discount_cents: 0, tax_cents: 2_300, total_cents: 12_800 },
  { subtotal_cents: 10_000, discount_cents: 1_000, tax_cents: 2_070, total_cents: 10_570 },
].map((amounts, index) =>
  makeRecord({ id: `in_tax${index}`, number: `T-${index}`, customer_id: 'cus_tax', ...amounts }),
)
/** Issued on another day in Lisbon than in UTC. */
const late = makeRecord({ id: 'in_late', customer_id: 'cus_late', issued_at: '2026-07-31T23:30:00.000Z' })
/** Its PDF cannot be fetched. */
const gone = makeRecord({ id: 'in_gone', customer_id: 'cus_gone', status: 'open' })
const brand = {
  ...{ name: 'Aurora Software', logo: null, accent: null, support: null },
  ...{ taxId: '509442013', address: 'Rua do Ensaio, 12, Lisboa', timeZone: 'Europe/Lisbon' },
}
const { service, open } = await startPages({
  ...bothSystems,
  payments,
  brand,
  records: [...history, hostile, late, gone, ...taxes],
})
const options = { timeout: 600_000, skip: lacksChromium }
const rows = 'table.invoices tbody tr'

/** Without it, a browser that can write files would ask where to. */
const noFilePicker = 'delete window.showSaveFilePicker'

async function take(page: Page, button: string): Promise<{ name: string; bytes: Buffer }> {
  await page.locator(rows).first().waitFor()
  const arrived = page.waitForEvent('download')
  await page.getByRole('button', { name: button, exact: true }).click()
  const download = await arrived
  return { name: download.suggestedFilename(), bytes: await readFile(await download.path()) }
}

// Each has a page of its own, and mostly waits for it.
describe('exports of the billing page', { concurrency: 3 }, () => {
  test(
    'CSV has all pages of the filtered list, in the format that Excel reads in the page’s language',
    options,
    async t => {
      const { page, assertClean } = await open(t, { path: '/?status=paid', locale: 'pt-PT' })
      const { name, bytes } = await take(page, 'CSV')
      assert.equal(name, 'invoices_cus_ana.csv')
      const text = bytes.toString()
      assert.ok(text.startsWith('\ufeffFatura;Data;Cliente;NIF;Pagamento;'))
      const lines = text.trimEnd().split('\r\n')
      const paid = history.filter(({ invoice }) => invoice.status === 'paid')
      assert.equal(lines.length, paid.length + 1)
      assert.match(
        lines[1] ?? '',
        /^FT-0123;2026-09-30;Padaria Simões, Lda\.;PT123456789;Paga;Emitido e liquidado;1000;FR A\/123;Fatura-recibo;ABCD1234-123;2026-03-02;;1003,71;0,00;23;230,85;0,00;1234,56;90,00;23% 90,00 20,70;1234,56;0,00;0,00;EUR;in_0123;cus_ana$/,
      )
      assert.ok(
        lines.some(line => /;123468;;;123468;0;0;JPY;/.test(line)) ||
          lines.some(line => /;1234\d\d;;;1234\d\d;0;0;JPY;/.test(line)),
      )
      await page.getByText('Concluído.').waitFor()
      assertClean()
    },
  )

  test(
    'CSV in Portuguese equals the output of fatura export --format csv-pt byte for byte',
    options,
    async t => {
      const cli = await createCli(t)
      const env = { TIME_ZONE: brand.timeZone }
      await cli.load(...[...history, late].map(({ invoice }) => invoice))
      const store = await openWriteStore(`sqlite:${cli.database}`)
      await store.transaction(tx => tx.saveInvoices([...history, late]))
      await store.close()
      for (const customer of ['cus_ana', 'cus_late']) {
        const { page } = await open(t, { customer, locale: 'pt-PT' })
        const { bytes } = await take(page, 'CSV')
        const { stdout } = await cli.run(['export', '--format', 'csv-pt', '--customer', customer], { env })
        assert.equal(bytes.toString(), stdout)
        if (customer === 'cus_late') assert.match(stdout, /;2026-08-01;/)
      }
    },
  )

  test(
    'CSV in English has commas between columns and points in decimals, and formulas stay text',
    options,
    async t => {
      const { page, assertClean } = await open(t, { customer: 'cus_hostile' })
      const { bytes } = await take(page, 'CSV')
      const [, line] = bytes.toString().split('\r\n')
      assert.equal(line?.slice(0, 42), `'=1+1,2026-03-02,"'@cmd; ""quoted"", é",PT`)
      assert.match(line ?? '', /,-10\.50,,,0\.00,0\.00,0\.00,EUR,in_hostile,cus_hostile$/)
      assertClean()
    },
  )

  test(
    'amounts of an export add up, where tax that the prices include is not added again',
    options,
    async t => {
      const { page, assertClean } = await open(t, { customer: 'cus_tax', locale: 'pt-PT' })
      const { bytes } = await take(page, 'CSV')
      const [head = '', ...lines] = bytes.toString().trimEnd().split('\r\n')
      const column = head.split(';').indexOf('IVA incluído no subtotal')
      const amountsOf = (line: string) =>
        line
          .split(';')
          .slice(column - 4, column + 2)
          .join(' ')
      assert.deepEqual(lines.map(amountsOf), [
        '100,00 10,00 23 20,70 0,00 105,70',
        '100,00 0,00 23 23,00 0,00 128,00',
        '469,35 68,06 23 75,04 75,04 401,29',
      ])
      for (const [id, expected] of [
        ['in_tax0', ['Subtotal 469,35', 'Desconto -68,06', 'Total 401,29', 'Inclui IVA (23%): 75,04 €']],
        ['in_tax1', ['Subtotal 100,00', 'IVA (23%) 23,00', 'Portes e outros encargos 5,00', 'Total 128,00']],
        [
          'in_tax2',
          [
            'Subtotal 100,00',
            'Desconto -10,00',
            'IVA (23%) 20,70',
            'IVA já incluído e créditos -5,00',
            'Total 105,70',
          ],
        ],
      ] as const) {
        await page.goto(`${service.address}/?invoice=${id}`)
        await page.locator('.totals').waitFor()
        const shown =
          await page.evaluate(`[...document.querySelectorAll('.totals > *, .included')].map(({ children, textContent }) =>
        children.length === 2 ? children[0].textContent + ' ' + parseFloat(children[1].textContent.replace(',', '.')).toFixed(2).replace('.', ',') : textContent)`)
        assert.deepEqual(
          (shown as string[]).map(text => text.replaceAll(/\s/g, ' ')),
          expected,
        )
      }
      assertClean()
    },
  )

  test('PDFs come as one ZIP with a table, which names the missing PDFs', options, async t => {
    const { page, assertClean } = await open(t, { path: '/?date_from=2026-09-01', init: noFilePicker })
    const { name, bytes } = await take(page, 'All PDFs')
    assert.equal(name, 'invoices_cus_ana_2026-09-01.zip')
    const found = history.filter(({ invoice }) => invoice.issued_at >= '2026-09')
    const text = bytes.toString('latin1')
    const entries = [...text.matchAll(/PK\x01\x02.{42}/gs)].map(({ index, 0: head }) => {
      const length = Buffer.from(head, 'latin1').readUInt16LE(28)
      return bytes.subarray(index + 46, index + 46 + length).toString()
    })
    const expected = found.flatMap(({ invoice: { number, status, id } }) => [
      ...(status === 'paid' ? [`Invoices/FR A-${Number(number?.slice(3))} ${id}.pdf`] : []),
      ...(status === 'draft' || id === 'in_0122' ? [] : [`Payments/${number} ${id}.pdf`]),
    ])
    assert.deepEqual(entries, [...expected, 'invoices.csv', 'missing.txt'])
    assert.ok(text.includes('%PDF-1.7\ndocument 1000') && text.includes('%PDF-1.7\npayments in_0123'))
    assert.ok(text.includes('Payments, FT-0122: There is no such document.'))
    await page.getByText('1 PDF could not be fetched').waitFor()
    assertClean(/Failed to load resource/)
  })

  test('a ZIP without any PDF is reported as failed', options, async t => {
    const { page } = await open(t, { customer: 'cus_gone', init: noFilePicker })
    await take(page, 'All PDFs')
    await page.getByText('No PDF could be fetched.').waitFor()
    assert.equal(await page.getByText('Done.').count(), 0)
  })

  test('each row offers its PDFs, or shows why a PDF is missing', options, async t => {
    const { page, assertClean } = await open(t)
    await page.locator(rows).first().waitFor()
    const first = page.locator(rows).first()
    for (const [button, content, file] of [
      ['Invoice (PDF) FR A/123', 'document 1000', 'FR A-123 in_0123.pdf'],
      ['Payment summary (Stripe) FR A/123', 'payments in_0123', 'FT-0123 in_0123.pdf'],
    ]) {
      if (content?.startsWith('payments')) await first.getByRole('button', { name: 'More' }).click()
      const arrived = page.waitForEvent('download')
      await first.getByRole('button', { name: String(button) }).click()
      const download = await arrived
      assert.equal(download.suggestedFilename(), file)
      assert.equal(await readFile(await download.path(), 'utf8'), `%PDF-1.7\n${content}`)
    }
    const row = page.locator(rows, { hasText: 'FT-0122' })
    assert.match((await row.textContent()) ?? '', /Being issued/, 'no document, no button')
    await row.getByRole('button', { name: 'More' }).click()
    await row.getByRole('button', { name: 'Payment summary (Stripe) FT-0122' }).click()
    await row.getByText('There is no such document.').waitFor()
    const draft = page.locator(rows, { hasText: 'Without a number yet' })
    assert.equal(await draft.getByRole('button').count(), 0)
    assertClean(/Failed to load resource/)
  })

  test(
    'a row’s menu closes when the page scrolls, but not from a scroll before it opened',
    options,
    async t => {
      const { page, assertClean } = await open(t)
      await page.locator(rows).first().waitFor()
      const menu = page.locator('.menu:popover-open')
      for (const [index, distance] of [
        [0, 60],
        [1, 30],
      ]) {
        // The browser tells of this scroll in its next frame, when the menu is open.
        await page.evaluate(`scrollBy(0, ${distance}); document.querySelectorAll('.more')[${index}].click()`)
        await page.evaluate('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))')
        assert.equal(await menu.count(), 1)
        await page.evaluate('scrollBy(0, -20)')
        await menu.waitFor({ state: 'detached' })
      }
      assertClean()
    },
  )

  test('a ZIP is streamed into a file where the browser supports it', options, async t => {
    const { page, assertClean } = await open(t, {
      path: '/?date_from=2026-09-25',
      init: `window.showSaveFilePicker = async ({ suggestedName }) =>
      (await navigator.storage.getDirectory()).getFileHandle(suggestedName, { create: true })`,
    })
    await page.locator(rows).first().waitFor()
    await page.getByRole('button', { name: 'All PDFs' }).click()
    await page.getByText('Done.').waitFor()
    const text = await page.evaluate(`navigator.storage.getDirectory()
    .then(folder => folder.getFileHandle('invoices_cus_ana_2026-09-25.zip'))
    .then(handle => handle.getFile()).then(file => file.text())`)
    assert.match(String(text), /^PK.*%PDF-1\.7\ndocument 1000.*PK\x05\x06/s)
    assertClean()
  })

  test('an export shows its progress and can be cancelled', options, async t => {
    let pages = 0
    const { page, watched } = await open(t, { init: noFilePicker })
    await page.locator('.charts').waitFor()
    // The second page of the walk never comes.
    await page.route(/page=2/, () => void pages++)
    await page.getByRole('button', { name: 'CSV', exact: true }).click()
    await page.getByText('50 of 123').waitFor()
    assert.equal(await page.getByRole('progressbar').getAttribute('value'), '50')
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('Cancelled.', { exact: true }).waitFor()
    assert.equal(pages, 1)
    const asked = watched.requests.length
    assert.equal(await page.getByRole('button', { name: 'CSV', exact: true }).isEnabled(), true)
    assert.equal(watched.requests.length, asked)
  })

  test(
    'a statement that fails to load after a filter change hides the earlier statement',
    options,
    async t => {
      const { page } = await open(t, { path: '/?statement=1&date_from=2026-01-01' })
      await page.locator('.statement').waitFor()
      await page.route(/\/statement\?/, route => route.abort())
      await page.evaluate(`history.pushState(null, '', '/?statement=1&date_from=2025-01-01')
      dispatchEvent(new PopStateEvent('popstate'))`)
      await page.getByRole('button', { name: 'Try again' }).waitFor()
      assert.equal(await page.locator('.statement').count(), 0)
    },
  )

  test(
    'a statement has each entry with its balance per currency, and prints the seller',
    options,
    async t => {
      const { page, assertClean } = await open(t, { path: '/?date_from=2026-01-01' })
      await page.getByRole('link', { name: 'Statement' }).click()
      await page.getByRole('heading', { name: 'Statement of account' }).waitFor()
      const token = await service.createToken()
      const { json } = await service.get('/api/v1/client/cus_ana/statement?from=2026-01-01&page_size=200', {
        token,
      })
      const ledgers = page.locator('.ledger')
      assert.equal(await ledgers.count(), json.currencies.length)
      for (const [index, sum] of (json.currencies as StatementSum[]).entries()) {
        const digits = sum.currency === 'jpy' ? 1 : 100
        const amount = (cents: number) =>
          new Intl.NumberFormat('en-GB', { style: 'currency', currency: sum.currency }).format(cents / digits)
        const ledger = ledgers.nth(index)
        const entries = (json.entries as StatementEntry[]).filter(({ currency }) => currency === sum.currency)
        // The opening balance, each entry, the closing balance.
        assert.equal(await ledger.locator('tbody tr').count(), entries.length + 2)
        const texts = await ledger.locator('tbody tr').allTextContents()
        const [first = '', last = ''] = [texts[0], texts.at(-1)]
        assert.ok(first.startsWith('Opening balance') && first.endsWith(amount(sum.opening_cents)), first)
        assert.ok(last.startsWith('Closing balance') && last.endsWith(amount(sum.closing_cents)), last)
        for (const [row, { balance_cents, number, invoice_number }] of entries.entries()) {
          const text = texts[row + 1] ?? ''
          assert.ok(
            text.endsWith(amount(balance_cents)) && text.includes(number ?? invoice_number ?? ''),
            text,
          )
        }
      }
      await page.emulateMedia({ media: 'print' })
      await page.getByRole('heading', { name: 'Statement of account' }).waitFor()
      assert.equal(
        (await page.locator('.seller').first().textContent())?.trim(),
        'Aurora Software · Tax ID 509442013 · Rua do Ensaio, 12, Lisboa',
      )
      // A table's head is printed again on each page.
      const display = await page.evaluate("getComputedStyle(document.querySelector('.ledger').tHead).display")
      assert.equal(display, 'table-header-group')
      for (const hidden of ['header.top', '.back'])
        assert.equal(await page.locator(hidden).isVisible(), false)
      assert.equal(await page.getByRole('button').count(), 0, 'nothing to press on paper')
      assertClean()
    },
  )

  test(
    'a printed list has a title, customer, day, filters and page position, and no empty part',
    options,
    async t => {
      const { page, assertClean } = await open(t, { path: '/?status=paid&page=2' })
      await page.locator('.charts').waitFor()
      await page.emulateMedia({ media: 'print' })
      const text = String(await page.evaluate('document.body.innerText'))
      const paid = history.filter(({ invoice }) => invoice.status === 'paid').length
      for (const part of [
        'Billing history',
        'Padaria Simões, Lda.',
        'Tax ID PT123456789',
        'Only: Paid',
        `11–20 of ${paid} invoices`,
      ])
        assert.ok(text.includes(part), `${part} in ${text}`)
      assert.match(text, /As of \d+ \w+ \d{4}/)
      assert.equal(await page.getByRole('button').count(), 0, 'nothing to press on paper')
      await page.goto(`${service.address}/?invoice=in_0123`)
      await page.locator('.detail').waitFor()
      const detail = String(await page.evaluate('document.body.innerText'))
      assert.match(detail, /FT-0123.*As of \d+ \w+ \d{4}/s)
      assert.match(detail, /Invoice-receipt FR A\/123 ATCUD ABCD1234-123/)
      assertClean()
    },
  )
})
