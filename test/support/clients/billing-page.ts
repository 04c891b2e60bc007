/** The billing page in a real browser, over a real service: what its tests share. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { after, type TestContext } from 'node:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import type { Invoice, InvoiceRecord } from '../../../src/domain/invoice.ts'
import { exampleDocument } from '../../../src/http/openapi/examples.ts'
import type { Pdf } from '../../../src/sources/source.ts'
import { engines } from '../databases/engines.ts'
import { makeInvoice, makeLine, withDocument } from '../worlds/records.ts'
import { type Service, type ServiceOptions, startService } from '../worlds/service.ts'
import { startBrowser, type Watched, watchPage } from './browser.ts'

/** Resources of a whole file end with it. */
export const wholeFile = { after } as unknown as TestContext

export interface Opened {
  page: Page
  watched: Watched
  /** Asserts that nothing was refused or went wrong, and that no other host was asked. */
  assertClean(expected?: RegExp): void
}

export interface Visit extends BrowserContextOptions {
  /** The part after the address, as in ?status=paid. */
  path?: string
  customer?: string
  /** Null opens the page without one. */
  token?: string | null
  init?: string
  /** Before the page goes anywhere. */
  prepare?(page: Page): Promise<unknown>
}

let started: Promise<Browser> | undefined
after(async () => (await started)?.close())

/** One for the whole file, from the first test on that needs it. */
export function browser(): Promise<Browser> {
  started ??= startBrowser({ after: () => {} })
  return started
}

export async function startPages(options: ServiceOptions = {}) {
  const [engine] = engines
  assert.ok(engine !== undefined)
  const service = await startService(wholeFile, engine, { web: true, ...options })
  const everything = await service.createToken()
  return {
    service,
    browser,
    everything,
    open: async (t: TestContext, visit: Visit = {}) =>
      open(t, await browser(), service, { token: everything, ...visit }),
  }
}

async function open(t: TestContext, browser: Browser, service: Service, visit: Visit): Promise<Opened> {
  const { path = '/', customer = 'cus_ana', token, init, prepare, ...options } = visit
  const context = await browser.newContext({
    locale: 'en-GB',
    viewport: { width: 1200, height: 900 },
    ...options,
  })
  t.after(() => context.close())
  // Far longer than anything takes: only what never comes reaches it.
  context.setDefaultTimeout(300_000)
  const page = await context.newPage()
  const watched = await watchPage(page)
  if (init !== undefined) await page.addInitScript(init)
  await prepare?.(page)
  const fragment = token === null ? '' : `#t=${token}&c=${customer}`
  await page.goto(`${service.address}${path}${fragment}`)
  return {
    page,
    watched,
    assertClean(expected = /^$/) {
      assert.deepEqual(
        watched.problems.filter(problem => !expected.test(problem)),
        [],
      )
      for (const url of watched.requests) assert.ok(url.startsWith(`${service.address}/`), url)
    },
  }
}

export const pdf = (text: string): Pdf => ({
  body: Readable.from([Buffer.from(`%PDF-1.7\n${text}`)]),
  size: null,
})

/** Both systems, each with a PDF for every id it is asked for. */
export const bothSystems = {
  payments: { fetchLines: async () => null, openPdf: async (id: string) => pdf(`payments ${id}`) },
  documents: { openPdf: async (id: number) => pdf(`document ${id}`) },
}

const statuses = ['paid', 'open', 'paid', 'paid', 'void', 'uncollectible', 'paid', 'draft'] as const

/** The printed number and the ATCUD; such a document has no QR code. */
function makeNumber(number: number) {
  return {
    number: `FR A/${number}`,
    atcud: `ABCD1234-${number}`,
    qr_path: null,
    related: [],
    buyer_name: 'Padaria Simões, Lda.',
  }
}

/** A customer's invoices: one every ten days, of every status, in two currencies, newest first by their numbers. */
export function makeHistory(count: number): InvoiceRecord[] {
  return Array.from({ length: count }, (_, index) => {
    const status = statuses[index % statuses.length] ?? 'paid'
    const day = new Date(Date.UTC(2026, 8, 30) - index * 10 * 86_400_000)
    const fields: Partial<Invoice> = {
      id: `in_${String(count - index).padStart(4, '0')}`,
      number: status === 'draft' ? null : `FT-${String(count - index).padStart(4, '0')}`,
      issued_at: day.toISOString(),
      status,
      currency: index % 5 === 4 ? 'jpy' : 'eur',
      total_cents: 123_456 + index,
      subtotal_cents: 100_371,
      tax_cents: 23_085 + index,
      display_name: 'Padaria Simões, Lda.',
      ...(status === 'paid' && { ...withDocument, ix_id: 1000 + index }),
      ...(status === 'open' && { ix_sync_state: 'creating' as const }),
    }
    return {
      invoice: makeInvoice(fields),
      lines: [
        makeLine({ description: 'Plano Essencial', currency: fields.currency ?? 'eur' }),
        makeLine({ description: 'Apoio técnico', quantity: null, unit_amount_cents: null }),
      ],
      document:
        status === 'paid' ? { ...exampleDocument, ...makeNumber(count - index), id: 1000 + index } : null,
    }
  })
}
