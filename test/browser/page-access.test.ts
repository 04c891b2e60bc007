/** The billing page for everybody: axe-core, the keyboard alone, small screens, large text, other colours; and its size. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import type { Route } from 'playwright-core'
import { loadPage } from '../../src/http/web-files.ts'
import { bothSystems, makeHistory, startPages } from '../support/clients/billing-page.ts'
import { findViolations, lacksChromium, screenshot } from '../support/clients/browser.ts'
import { makeLine, makeRecord, withDocument } from '../support/worlds/records.ts'

const unbroken = (length: number) => 'W'.repeat(length)
/** Words without a place to break, in every text that a payment platform lets somebody type. */
const longWords = makeRecord(
  {
    id: 'in_long',
    customer_id: 'cus_long',
    number: unbroken(60),
    display_name: unbroken(90),
    customer_tax_id: unbroken(40),
    ...withDocument,
    ix_status: unbroken(50),
    subtotal_cents: 987_654_321_00,
    discount_cents: 87_654_321_00,
    tax_cents: 207_000_000_00,
    total_cents: 1_107_000_000_00,
  },
  [
    makeLine({
      description: `https://example.com/${unbroken(60)}`,
      quantity: 1_234_567,
      unit_amount_cents: 800,
      subtotal_cents: 987_654_321_00,
      discount_cents: 87_654_321_00,
      amount_cents: 900_000_000_00,
    }),
    makeLine({ description: unbroken(200) }),
  ],
)
const { service, open } = await startPages({ ...bothSystems, records: [...makeHistory(63), longWords] })
const options = { timeout: 600_000, skip: lacksChromium }

/** Each view, with what shows that it is there. The first is where a page is opened. */
const views = {
  list: ['/', '.charts'],
  filtered: ['/?status=paid&q=zzz', '.notice'],
  detail: ['/?invoice=in_0063', '.detail'],
  draft: ['/?invoice=in_0056', '.detail'],
  statement: ['/?statement=1&date_from=2026-06-01', '.statement'],
  missing: ['/?invoice=in_none', '.notice'],
} as const

// Each has a page of its own, and mostly waits for it.
describe('the accessible billing page', { concurrency: 3 }, () => {
  for (const [name, look] of Object.entries({
    'light, English': { locale: 'en-GB', colorScheme: 'light' },
    'dark, Portuguese, on a phone': {
      locale: 'pt-PT',
      colorScheme: 'dark',
      viewport: { width: 390, height: 800 },
    },
  } as const))
    test(`passes axe-core’s checks of WCAG 2.2 AA in this view: ${name}`, options, async t => {
      const { page, assertClean } = await open(t, { ...look, reducedMotion: 'reduce' })
      for (const [view, [path, sign]] of Object.entries(views)) {
        if (path !== '/') await page.goto(service.address + path)
        await page.locator(sign).first().waitFor()
        assert.deepEqual(await findViolations(page), [], view)
        await screenshot(page, `${view}-${look.colorScheme}`)
      }
      const other = await open(t, { ...look, token: null })
      await other.page.locator('.notice').waitFor()
      assert.deepEqual(await findViolations(other.page), [], 'sign-in')
      assertClean(/Failed to load resource/)
    })

  test('needs no horizontal scrolling at a width of 320 px or a zoom of 200 %', options, async t => {
    const zoomed = { width: 640, height: 450 }
    const { page } = await open(t, { viewport: zoomed, deviceScaleFactor: 2 })
    for (const [view, [path, sign]] of Object.entries(views)) {
      if (path !== '/') await page.goto(service.address + path)
      await page.locator(sign).first().waitFor()
      for (const size of [{ width: 320, height: 640 }, zoomed]) {
        await page.setViewportSize(size)
        const width = Number(await page.evaluate('document.documentElement.scrollWidth'))
        assert.ok(width <= size.width, `${view}: ${width} px at ${size.width}`)
        await screenshot(page, `${view}-${size.width}`)
      }
    }
  })

  test('wraps long words inside their cards', options, async t => {
    const { page } = await open(t, { customer: 'cus_long' })
    for (const [path, amount] of [
      ['/', '.invoices .number'],
      ['/?invoice=in_long', '.lines .number'],
      ['/?statement=1', '.statement .number'],
    ] as const) {
      if (path !== '/') await page.goto(service.address + path)
      await page.locator(amount).first().waitFor()
      for (const width of [320, 390, 700, 1280]) {
        await page.setViewportSize({ width, height: 800 })
        const outside = await page.evaluate(`(() => {
          const parts = [...document.querySelectorAll('.card :is(th, td, dt, dd, h2, p, button, a, .badge)')]
          return parts.flatMap(part => {
            const { left, right, width } = part.getBoundingClientRect()
            const card = part.closest('.card').getBoundingClientRect()
            const isOutside = left < card.left || right > card.right || part.scrollWidth > Math.ceil(width) + 1
            return isOutside && width > 0 && !part.closest('thead, .scroller, .hidden') ? [part.className + ' ' + part.textContent] : []
          })
        })()`)
        assert.deepEqual(outside, [], `${path} at ${width} px`)
        const lines = await page.evaluate(`[...document.querySelectorAll('.number, .sum, .totals dd')]
          .filter(({ offsetHeight, textContent }) => textContent !== '' && offsetHeight > 0)
          .filter(part => {
            const range = document.createRange()
            range.selectNodeContents(part)
            const tops = [...range.getClientRects()].map(({ top }) => top)
            return Math.max(...tops) - Math.min(...tops) > 8
          }).map(({ textContent }) => textContent)`)
        assert.deepEqual(lines, [], `amounts in one piece: ${path} at ${width} px`)
        await screenshot(page, `long-${path.replace(/\W+/g, '-')}-${width}`)
      }
    }
  })

  test('can be used by keyboard alone: filters, pages, an invoice, a PDF and back', options, async t => {
    const { page, assertClean } = await open(t)
    await page.locator('.charts').waitFor()
    const press = async (key: string, times = 1) => {
      for (let i = 0; i < times; i++) await page.keyboard.press(key)
    }
    const focused = () =>
      page.evaluate(
        `(element => element.getAttribute('aria-label') ?? element.labels?.[0]?.textContent.trim() ?? element.textContent)(document.activeElement)`,
      )
    /** Goes on until it stands there; each stop must show that it has the focus. */
    const tabTo = async (name: RegExp) => {
      for (let stops = 0; stops < 80; stops++) {
        await press('Tab')
        // Past the last stop, the browser's own come.
        if (await page.evaluate('document.activeElement === document.body')) continue
        const outline = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')
        assert.notEqual(outline, 'none', String(await focused()))
        if (name.test(String(await focused()))) return
      }
      assert.fail(`${name} cannot be reached`)
    }
    await press('Tab')
    assert.equal(await focused(), 'Skip to the invoices')
    await press('Enter')
    await tabTo(/^FR A\/63$/)
    await page.keyboard.press('Shift+Tab')
    await tabTo(/^FR A\/63$/)
    await press('Enter')
    await page.locator('.detail').waitFor()
    assert.equal(await focused(), 'FR A/63', 'the heading of what was opened')
    await tabTo(/^Invoice \(PDF\)/)
    const arrived = page.waitForEvent('download')
    await press('Space')
    await (await arrived).path()
    await page.goBack()
    await page.locator('table.invoices').waitFor()
    assert.equal(await focused(), 'FR A/63', 'where it was left')
    await tabTo(/^State(?!ment)/)
    await press('ArrowDown', 3)
    await page.waitForURL(/status=paid/)
    await tabTo(/^Next$/)
    await press('Enter')
    await page.waitForURL(/page=2/)
    assertClean()
  })

  test(
    'shows unusual states more strongly than usual states, and strikes cancelled totals through',
    options,
    async t => {
      const { page } = await open(t)
      await page.locator('.charts').waitFor()
      const groundOf = (text: string) =>
        page.evaluate(`getComputedStyle([...document.querySelectorAll('.badge')]
        .find(({ textContent }) => textContent === '${text}')).backgroundColor`)
      const none = 'rgba(0, 0, 0, 0)'
      assert.equal(await groundOf('Paid'), none)
      for (const unusual of ['To pay', 'Written off', 'Cancelled', 'Draft'])
        assert.notEqual(await groundOf(unusual), none, unusual)
      for (const [path, struck] of [
        ['/', '.invoices s'],
        ['/?invoice=in_0059', '.sum s'],
      ] as const) {
        if (path !== '/') await page.goto(service.address + path)
        await page.locator(struck, { hasText: '123,460' }).waitFor()
        const figures = await page.evaluate(
          `[...new Set([...document.querySelectorAll('.number, .sum, dd, time, .found')].map(part => getComputedStyle(part).fontVariantNumeric))]`,
        )
        assert.deepEqual(figures, ['tabular-nums'], path)
      }
    },
  )

  for (const width of [390, 1280])
    test(`does not move its parts while the first view loads at a width of ${width} px`, options, async t => {
      const held: Route[] = []
      const { page } = await open(t, {
        viewport: { width, height: 1_600 },
        init: `window.shifts = []
        new PerformanceObserver(list => {
          for (const { value, sources } of list.getEntries())
            shifts.push(value.toFixed(4) + ' ' + sources.map(({ node }) => node?.className ?? node?.nodeName))
        }).observe({ type: 'layout-shift', buffered: true })`,
        async prepare(page) {
          await page.clock.install()
          await page.route(/\/invoices(\?|$)/, route => void held.push(route), { times: 1 })
        },
      })
      await page.locator('.bone').first().waitFor()
      assert.equal(await page.locator('.bone').count(), 10, 'as many as rows come')
      await page.clock.fastForward(7_000)
      await page.locator('.loading').getByRole('button').waitFor()
      await screenshot(page, `loading-${width}`)
      for (const route of held) await route.continue()
      await page.locator('.charts').waitFor()
      await page.locator('.invoices').waitFor()
      assert.equal(await page.locator('.owed').count(), 1)
      assert.deepEqual(await page.evaluate('shifts'), [])
    })

  test('has no animations for readers who prefer reduced motion', options, async t => {
    const animations = async (reducedMotion: 'reduce' | 'no-preference') => {
      const held: Route[] = []
      const { page } = await open(t, {
        reducedMotion,
        prepare: page => page.route(/\/invoices(\?|$)/, route => void held.push(route), { times: 1 }),
      })
      const ofFirst = (selector: string) =>
        page.evaluate(`getComputedStyle(document.querySelector('${selector}')).animationName`)
      await page.locator('.bone').first().waitFor()
      const ofOutline = await ofFirst('.bone')
      for (const route of held) await route.continue()
      await page.locator('.invoices').waitFor()
      await page.evaluate("document.querySelector('.invoices tbody tr').classList.add('changed')")
      return [ofOutline, await ofFirst('.changed')]
    }
    assert.deepEqual(await animations('no-preference'), ['breathe', 'changed'])
    assert.deepEqual(await animations('reduce'), ['none', 'none'])
  })

  test('gives each state its own words and shape in forced colours', options, async t => {
    const { page } = await open(t, { forcedColors: 'active' })
    await page.locator('.charts').waitFor()
    const fills = await page.evaluate(`(() => {
    const text = getComputedStyle(document.querySelector('.found')).color
    const bar = getComputedStyle(document.querySelector('.bars rect')).fill
    const badge = getComputedStyle(document.querySelector('.badge')).borderTopColor
    return [bar === text, badge === text]
  })()`)
    assert.deepEqual(fills, [true, true])
    await screenshot(page, 'forced-colours')
  })

  test('has files of at most 60 KB compressed, including the element', () => {
    const files = loadPage({})
    assert.deepEqual(files.map(({ path }) => path.replace(/-[A-Z0-9]{8}\./, '.')).toSorted(), [
      '/',
      '/assets/chunk.js',
      '/assets/chunk.js',
      '/assets/page.js',
      '/assets/zip.js',
      '/fatura-invoices.js',
    ])
    const plain = files.map(({ variants }) => variants.at(-1)?.body ?? Buffer.alloc(0))
    const sum = (compress: (body: Buffer) => Buffer) =>
      plain.reduce((total, body) => total + compress(body).length, 0)
    const sizes = {
      br: sum(body => brotliCompressSync(body)),
      gzip: sum(body => gzipSync(body, { level: 9 })),
    }
    assert.ok(sizes.br <= 60_000 && sizes.gzip <= 60_000, JSON.stringify(sizes))
  })

  test('has a content policy that allows only its own files', async () => {
    const { headers, status } = await service.get('/', { token: null })
    assert.equal(status, 200)
    assert.equal(
      headers['content-security-policy'],
      "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; script-src 'self'; connect-src 'self'; img-src data:; require-trusted-types-for 'script'",
    )
    assert.equal(headers['referrer-policy'], 'no-referrer')
  })
})
