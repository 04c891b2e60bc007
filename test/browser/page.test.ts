/** The billing page as customers use it, in a real browser. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import type { Invoice } from '../../src/domain/invoice.ts'
import { monthsBetween } from '../../src/web/month-totals.ts'
import { bothSystems, makeHistory, startPages } from '../support/clients/billing-page.ts'
import { lacksChromium } from '../support/clients/browser.ts'
import { makeRecord } from '../support/worlds/records.ts'

type Box = Record<'top' | 'bottom' | 'height', number>

const history = makeHistory(63)
const { service, open } = await startPages({ records: history, ...bothSystems })
const options = { timeout: 600_000, skip: lacksChromium }

const rows = 'table.invoices tbody tr'

// Each has a page of its own, and mostly waits for it.
describe('the billing page', { concurrency: 3 }, () => {
  test(
    'opens a link’s list, removes the token from the address, and keeps the token for this tab',
    options,
    async t => {
      const { page, watched, assertClean } = await open(t)
      await page.locator(rows).first().waitFor()
      assert.equal(page.url(), `${service.address}/`)
      assert.equal(await page.locator(rows).count(), 10)
      assert.equal(await page.locator('.found').textContent(), '63 invoices')
      assert.match(
        (await page.locator(rows).first().textContent()) ?? '',
        /FR A\/63.*FT-0063.*30 Sept 2026.*Paid.*€1,234\.56.*Invoice \(PDF\)/,
      )
      assert.equal(await page.title(), 'Your invoices')
      await page.reload()
      await page.locator(rows).first().waitFor()
      for (const url of watched.requests) assert.doesNotMatch(url, /fat_/)
      const other = await page.context().newPage()
      await other.goto(service.address)
      await other.getByText('Open the link that you were given').waitFor()
      assertClean()
    },
  )

  test(
    'writes amounts with the decimals of their currency, and states in the reader’s language',
    options,
    async t => {
      const { page, assertClean } = await open(t, { path: '/?page_size=50', locale: 'pt-PT' })
      await page.locator(rows).first().waitFor()
      assert.equal(await page.locator(rows).count(), 50)
      const text = (await page.locator('table.invoices').textContent()) ?? ''
      for (const word of ['Paga', 'Por pagar', 'Anulada', 'Incobrável', 'Rascunho', 'Ainda sem número'])
        assert.ok(text.includes(word), word)
      assert.ok(text.includes('Em emissão'), 'where the document is still to come')
      assert.doesNotMatch(text, /Em atraso/)
      assert.match(text, /1\s234,56\s€/)
      assert.match(text, /123\s460\sJP¥/, 'yen have no decimals')
      assert.equal(await page.getAttribute('html', 'lang'), 'pt-PT')

      await page.getByRole('button', { name: 'English' }).click()
      await page.getByText('63 invoices', { exact: true }).waitFor()
      assert.match(page.url(), /lang=en/)
      assert.equal(await page.getAttribute('html', 'lang'), 'en')
      assertClean()
    },
  )

  test('keeps filters and pages in the address, for sharing and for the back button', options, async t => {
    const { page, assertClean } = await open(t)
    const found = (text: string) => page.locator('.found', { hasText: new RegExp(`^${text}$`) }).waitFor()
    await found('63 invoices')
    const isPaidWithin = ({ status, issued_at }: Invoice, from: string, to: string) =>
      status === 'paid' && issued_at >= from && issued_at < to
    const count = (from: string, to: string) =>
      `${history.filter(({ invoice }) => isPaidWithin(invoice, from, to)).length} invoices`
    await page.getByLabel('State').selectOption('Paid')
    await found(count('', '9'))
    assert.equal(new URL(page.url()).search, '?status=paid')
    await page.getByLabel('From', { exact: true }).fill('2026-01-01')
    await found(count('2026', '9'))
    await page.getByLabel('To', { exact: true }).fill('2026-06-30')
    await found(count('2026', '2026-07'))
    await page.getByRole('combobox', { name: 'Document' }).selectOption('Draft')
    await page.getByText('No invoice matches').waitFor()
    await page.goBack()
    await found(count('2026', '2026-07'))
    await page.getByLabel('Search').fill('ft 0053')
    await found('1 invoice')
    assert.equal(new URL(page.url()).search, '?status=paid&date_from=2026-01-01&date_to=2026-06-30&q=ft+0053')
    await page.reload()
    await found('1 invoice')
    assert.equal(await page.getByLabel('Search').inputValue(), 'ft 0053')
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await found('63 invoices')

    await page.getByRole('link', { name: 'Next' }).click()
    await page.getByText('Page 2 of 7').waitFor()
    assert.match((await page.locator(rows).first().textContent()) ?? '', /FT-0053/)
    await page.getByLabel('Per page').selectOption('25')
    await page.getByText('Page 1 of 3').waitFor()
    assert.equal(new URL(page.url()).search, '?page_size=25')
    await page.goBack()
    await page.getByText('Page 2 of 7').waitFor()
    assertClean()
  })

  test('shows a list even for an address with invalid filters', options, async t => {
    const path = '/?status=nonsense&date_from=2026-13-40&page=zwei&page_size=7&ix_status=odd&q='
    const { page, assertClean } = await open(t, { path })
    await page.getByText('No invoice matches').waitFor()
    assert.equal(await page.getByRole('combobox', { name: 'Document' }).inputValue(), 'odd')
    await page.goto(`${service.address}/?page=99`)
    await page.getByText('Page 7 of 7').waitFor()
    assertClean()
  })

  test(
    'shows one invoice with its state, lines, totals and two PDFs with proper file names',
    options,
    async t => {
      const { page, assertClean } = await open(t)
      await page.getByRole('link', { name: 'FR A/63' }).click()
      await page.getByRole('heading', { name: 'FR A/63' }).waitFor()
      assert.match(page.url(), /\?invoice=in_0063$/)
      const text = (await page.locator('.detail').textContent()) ?? ''
      for (const word of [
        'Padaria Simões, Lda.',
        'Plano Essencial',
        'Apoio técnico',
        '€1,003.71',
        'Tax (23%)',
        '€1,234.56',
      ])
        assert.ok(text.includes(word), word)
      for (const [name, content, file] of [
        ['Invoice (PDF) FR A/63', 'document 1000', 'FR A-63 in_0063.pdf'],
        ['Payment summary (Stripe)', 'payments in_0063', 'FT-0063 in_0063.pdf'],
      ]) {
        const arrived = page.waitForEvent('download')
        await page.getByRole('button', { name: String(name) }).click()
        const download = await arrived
        assert.equal(download.suggestedFilename(), file)
        assert.equal(await readFile(await download.path(), 'utf8'), `%PDF-1.7\n${content}`)
      }
      await page.getByRole('link', { name: 'All invoices' }).click()
      await page.locator(rows).first().waitFor()
      await page.goBack()
      await page.getByRole('heading', { name: 'FR A/63' }).waitFor()
      assertClean()
    },
  )

  test(
    'has the chart of each currency as a table of months, without drafts and cancelled invoices',
    options,
    async t => {
      const { page, assertClean } = await open(t, { path: '/?status=void' })
      const chart = page.getByRole('table', { name: 'Billed by month, EUR' })
      await chart.waitFor()
      const cells = await page.evaluate(`(() => {
    const tables = [...document.querySelectorAll('.charts table')]
    const { rows } = tables[0].tBodies[0]
    return [...rows].map(row => [...row.children].map(cell => cell.querySelector('.hidden').textContent))
  })()`)
      const expected = new Map<string, number>()
      for (const { invoice } of history) {
        const { issued_at, status, currency, total_cents } = invoice
        if (currency !== 'eur' || status === 'draft' || status === 'void') continue
        const month = issued_at.slice(0, 7)
        expected.set(month, (expected.get(month) ?? 0) + total_cents)
      }
      const monthName = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' })
      assert.deepEqual(
        cells,
        monthsBetween([...expected.keys()]).map(month => [
          monthName.format(new Date(`${month}-01`)),
          new Intl.NumberFormat('en-GB', { style: 'currency', currency: 'EUR' }).format(
            (expected.get(month) ?? 0) / 100,
          ),
        ]),
      )
      assert.equal(await page.locator('[style]').count(), 0, 'no style stands in the page')
      assertClean()
    },
  )

  test(
    'has a chart of whole months with earlier periods, and draws negative months below zero',
    options,
    async t => {
      for (const [month, total_cents, currency] of [
        ...Array.from({ length: 30 }, (_, month) => [month, 100_00, 'eur'] as const),
        [28, -500_00, 'eur'],
        [27, 300_00, 'usd'],
        [29, 300_00, 'usd'],
        [29, 200, 'jpy'],
      ] as const)
        await service.save(
          makeRecord({
            id: `in_chart${month}${currency}${total_cents}`,
            customer_id: 'cus_chart',
            issued_at: new Date(Date.UTC(2024, month, 10)).toISOString(),
            total_cents,
            currency,
          }),
        )
      const { page, assertClean } = await open(t, { customer: 'cus_chart' })
      await page.getByRole('table', { name: 'Billed by month, EUR' }).waitFor()
      assert.equal(await page.locator('.bars').count(), 1, 'one currency at a time')
      const earlier = page.getByRole('button', { name: 'Earlier months' })
      /** Clicks until there is nowhere left to go, and the button shows that. */
      const goTo = async (end: 'Earlier' | 'Later') => {
        const isThere = end === 'Earlier' ? 'scrollLeft < 2' : 'scrollLeft + clientWidth > scrollWidth - 2'
        while (
          !(await page.evaluate(`(() => {
            const { scrollLeft, clientWidth, scrollWidth } = document.querySelector('.scroller')
            const button = document.querySelector('[aria-label="${end} months"]')
            if (!(${isThere})) button?.click()
            return ${isThere} && button?.disabled
          })()`))
        );
      }
      /** Months whose columns are in sight, wholly or in part. */
      const inSight = () =>
        page.evaluate(`(() => {
        const frame = document.querySelector('.scroller').getBoundingClientRect()
        return [...document.querySelectorAll('.bars tbody tr')].flatMap(row => {
          const { left, right } = row.getBoundingClientRect()
          const part = (Math.min(right, frame.right) - Math.max(left, frame.left)) / (right - left)
          return part > 0.02 ? [[row.querySelector('.hidden').textContent, part > 0.98]] : []
        })
      })()`) as Promise<[string, boolean][]>
      assert.equal((await inSight()).at(-1)?.[0], 'June 2026', 'the newest at first')
      for (const width of [390, 700, 1280]) {
        await page.setViewportSize({ width, height: 900 })
        await goTo('Later')
        const months = await inSight()
        assert.equal(months.at(-1)?.[0], 'June 2026', `${width} px`)
        assert.ok(
          months.every(([, isWhole]) => isWhole),
          `${width} px: ${months}`,
        )
      }
      await goTo('Earlier')
      assert.equal((await inSight())[0]?.[0], 'January 2024')
      // The scale is that of the months in sight.
      await goTo('Later')
      const [zero, up, down] = (await page.evaluate(`(() => {
      const rows = [...document.querySelectorAll('.bars tbody tr')].slice(-3)
      const box = (row, part) => row.querySelector(part).getBoundingClientRect()
      return [box(rows[0], '.zero').top, box(rows[0], '.amount'), box(rows[1], '.amount')]
    })()`)) as [number, Box, Box]
      assert.ok(up.height > 0 && up.bottom <= zero + 1, 'above the axis')
      assert.ok(down.top >= zero - 1 && down.height > 3 * up.height, 'below the axis')
      await page.getByRole('button', { name: 'USD' }).click()
      await page.getByRole('table', { name: 'Billed by month, USD' }).waitFor()
      assert.equal(await earlier.count(), 0, 'three months need no steps')
      assert.equal(
        await page.getByRole('button', { name: 'JPY' }).count(),
        0,
        'a chart of one month tells nothing',
      )
      assertClean()
    },
  )

  test('shows changes in the store without a reload', options, async t => {
    await service.save(makeRecord({ id: 'in_live', customer_id: 'cus_live', number: 'L-1', status: 'open' }))
    const listening = Promise.withResolvers<void>()
    const { page, assertClean } = await open(t, {
      customer: 'cus_live',
      prepare: async page => {
        page.on('request', request => request.url().includes('&wait=') && listening.resolve())
      },
    })
    await page.locator('.owed', { hasText: 'To pay€123.00' }).waitFor()
    await listening.promise
    await service.save(makeRecord({ id: 'in_live', customer_id: 'cus_live', number: 'L-1', status: 'paid' }))
    await page.locator('tr.changed .badge', { hasText: 'Paid' }).waitFor()
    await page.getByText('Nothing to pay.').waitFor()
    assert.equal(await page.locator('.freshness [role=status]').textContent(), 'The list was updated (1)')
    assertClean()
  })

  test('marks no row as changed while a reader pages, searches or filters', options, async t => {
    const { page, assertClean } = await open(t, {
      init: `window.marks = []
      new MutationObserver(() => {
        for (const row of document.querySelectorAll('tr.changed')) marks.push(row.textContent)
        const told = document.querySelector('.freshness [role=status]')?.textContent
        if (told) marks.push(told)
      }).observe(document, { subtree: true, childList: true, attributes: true, characterData: true })`,
    })
    const found = (text: string) => page.locator('.found', { hasText: text }).waitFor()
    await found('63 invoices')
    await page.getByRole('link', { name: 'Next' }).click()
    await page.getByRole('link', { name: 'FR A/53' }).waitFor()
    await page.getByLabel('Per page').selectOption('25')
    await page.getByRole('link', { name: 'FR A/63' }).waitFor()
    await page.getByLabel('State').selectOption('To pay')
    await found('8 invoices')
    await page.getByLabel('Search').fill('ft 0062')
    await found('1 invoice')
    await page.goBack()
    await found('8 invoices')
    assert.deepEqual(await page.evaluate('marks'), [])
    assertClean()
  })

  test('requests the first rows before anything is drawn, in one round trip', options, async t => {
    const { page, watched } = await open(t, {
      init: `const usual = window.fetch
      window.fetch = (...given) => {
        window.drawnAtFirst ??= document.getElementById('fatura').childElementCount
        return usual(...given)
      }`,
    })
    await page.locator(rows).first().waitFor()
    assert.equal(await page.evaluate('drawnAtFirst'), 0)
    const paths = watched.requests.map(url => new URL(url).pathname)
    const list = paths.findIndex(path => path.endsWith('/invoices'))
    assert.deepEqual(
      paths.slice(0, list).filter(path => !path.startsWith('/assets/')),
      ['/'],
    )
  })
})
