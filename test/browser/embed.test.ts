/** The invoices in somebody else's page: as an element, in a frame, and as a picker. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { after, describe, type TestContext, test } from 'node:test'
import type { Page } from 'playwright-core'
import { createQrImage } from '../../sandbox/invoicexpress/qr-image.ts'
import { qrPath } from '../../src/domain/invoice.ts'
import { bothSystems, makeHistory, startPages } from '../support/clients/billing-page.ts'
import { lacksChromium, screenshot, watchPage } from '../support/clients/browser.ts'
import { makeLinkSigner, publicUrl } from '../support/worlds/identity.ts'

const types: Record<string, string> = { js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' }

/** Pages of another host, by path; strict as a careful host's are. */
const hosted = new Map<string, string>()
const host = createServer((request, response) => {
  const path = (request.url ?? '').split('?')[0] ?? ''
  const content = hosted.get(path)
  const policy = `default-src 'none'; script-src 'self' ${service.address}; connect-src ${service.address}; frame-src ${service.address}; style-src 'self'; img-src 'self'`
  response.setHeader('content-security-policy', policy)
  response.setHeader('content-type', types[path.split('.')[1] ?? ''] ?? 'text/html')
  response.statusCode = content === undefined ? 404 : 200
  response.end(content)
}).listen(0, '127.0.0.1')
await new Promise(resolve => host.once('listening', resolve))
after(() => {
  host.closeAllConnections()
  host.close()
})
const origin = `http://127.0.0.1:${(host.address() as AddressInfo).port}`

const { service, browser, everything } = await startPages({
  ...bothSystems,
  documents: {
    ...bothSystems.documents,
    openQr: async () => ({
      body: Readable.from([createQrImage('ABCD1234-12')]),
      size: null,
      type: 'image/png',
    }),
  },
  records: makeHistory(12).map(record => {
    const { invoice, document } = record
    if (!document || invoice.id !== 'in_0012') return record
    return { ...record, document: { ...document, qr_path: qrPath('cus_ana', invoice.id) } }
  }),
  corsOrigins: [origin],
  embedOrigins: [origin],
  publicUrl,
})
const signer = makeLinkSigner()
await service.store.saveKey(signer.key)
const options = { timeout: 600_000, skip: lacksChromium }

/** Each test has a page of its own, by its number. */
let pages = 0

async function openHost(
  t: TestContext,
  html: string,
  script: string,
  before?: (page: Page) => Promise<unknown>,
) {
  const path = `/${++pages}`
  hosted.set(
    path,
    `<!doctype html><html lang="en"><meta charset="utf-8"><title>Host</title><link rel="icon" href="/logo.svg"><link rel="stylesheet" href="/host.css">${html}<script type="module" src="${path}.js"></script></html>`,
  )
  hosted.set(`${path}.js`, script)
  hosted.set('/logo.svg', "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>")
  hosted.set(
    '/host.css',
    'fatura-invoices { --fatura-accent: rgb(120, 0, 120); --fatura-radius: 0 } iframe { width: 100%; height: 800px }',
  )
  const context = await (await browser()).newContext({
    locale: 'en-GB',
    viewport: { width: 1100, height: 900 },
  })
  t.after(() => context.close())
  context.setDefaultTimeout(300_000)
  const page = await context.newPage()
  const watched = await watchPage(page)
  await before?.(page)
  const address = `${origin}${path}?of=the-host#its-own`
  await page.goto(address)
  return { page, watched, address }
}

const element = `<fatura-invoices customer="cus_ana"></fatura-invoices><script type="module" src="ADDRESS/fatura-invoices.js"></script>`
const withElement = () => element.replace('ADDRESS', service.address)

// Each has a page of its own, and mostly waits for it.
describe('the billing page in another page', { concurrency: 3 }, () => {
  test(
    'the element shows the invoices under the host’s strict policy and colours, and keeps the host’s address',
    options,
    async t => {
      const { page, watched, address } = await openHost(
        t,
        withElement(),
        `document.querySelector('fatura-invoices').fetchToken = async () => ${JSON.stringify(everything)}`,
      )
      await page
        .getByRole('link', { name: 'FR A/12' })
        .or(page.getByRole('button', { name: 'FR A/12', exact: true }))
        .click()
      await page.getByRole('heading', { name: 'FR A/12', level: 3 }).waitFor()
      // The host's policy forbids images of any other address, also data: and blob:.
      await page.locator('svg.qr').waitFor()
      const shown = await page.evaluate(
        `getComputedStyle(document.querySelector('fatura-invoices').shadowRoot.querySelector('button.primary')).backgroundColor`,
      )
      assert.equal(shown, 'rgb(120, 0, 120)')
      await page.getByRole('button', { name: 'All invoices' }).click()
      const looks = await page.evaluate(`(() => {
        const buttons = [...document.querySelector('fatura-invoices').shadowRoot.querySelectorAll('button')]
        return ['Previous', 'Next', 'CSV', 'Statement'].map(text => {
          const button = buttons.find(({ textContent }) => textContent === text)
          const { borderTopWidth, height, paddingLeft, textDecorationLine } = getComputedStyle(button)
          return [borderTopWidth, height, paddingLeft, textDecorationLine].join(' ')
        })
      })()`)
      assert.equal(new Set(looks as string[]).size, 1, `steps look like the buttons beside them: ${looks}`)
      await page.getByLabel('State').selectOption('Paid')
      await page.locator('.found', { hasText: /^7 invoices$/ }).waitFor()
      assert.equal(page.url(), address)
      assert.equal(
        await page.evaluate(
          `document.querySelector('fatura-invoices').shadowRoot.querySelectorAll('[style], style').length`,
        ),
        0,
      )
      assert.equal(await page.evaluate('sessionStorage.length + localStorage.length'), 0)
      assert.deepEqual(watched.problems, [])
      for (const url of watched.requests)
        assert.ok(url.startsWith(`${origin}/`) || url.startsWith(`${service.address}/`), url)
    },
  )

  test('the element takes the company’s name, logo, colour and contact from attributes', options, async t => {
    const brand = `name="Aurora" logo="/logo.svg" accent="#1d4e89" support="https://aurora.example/help"`
    const { page, watched } = await openHost(
      t,
      withElement().replace('<fatura-invoices', `<fatura-invoices ${brand}`),
      `document.querySelector('fatura-invoices').fetchToken = async () => ${JSON.stringify(everything)}`,
    )
    await page.getByRole('link', { name: 'aurora.example/help' }).waitFor()
    assert.equal(await page.locator('.company').innerText(), 'Aurora')
    assert.equal(
      await page.locator('.company img').evaluate((image: { naturalWidth: number }) => image.naturalWidth),
      9,
    )
    const shown = `getComputedStyle(document.querySelector('fatura-invoices').shadowRoot.querySelector('.support a')).color`
    assert.equal(await page.evaluate(shown), 'rgb(29, 78, 137)')
    assert.deepEqual(watched.problems, [])
  })

  test(
    'the element requests a new token at 80 % of the old token’s life, or after a refusal',
    options,
    async t => {
      const iat = Math.floor(Date.now() / 1000)
      const short = signer.token({ iat, exp: iat + 120 })
      const long = signer.token({ iat, exp: iat + 3_000 })
      const { page, watched } = await openHost(
        t,
        withElement(),
        `window.asked = 0
    const tokens = ${JSON.stringify([`${short.slice(0, -4)}AAAA`, short, long])}
    document.querySelector('fatura-invoices').fetchToken = async () => tokens[window.asked++]`,
        page => page.clock.install(),
      )
      // The first token is refused, so the second is asked for.
      await page.getByRole('button', { name: 'FR A/12', exact: true }).waitFor()
      await page.locator('.owed-sum').first().waitFor()
      assert.equal(await page.evaluate('asked'), 2)
      await page.clock.fastForward(60_000)
      assert.equal(await page.evaluate('asked'), 2)
      const before = watched.requests.length
      await page.clock.fastForward(40_000)
      assert.equal(await page.evaluate('asked'), 3)
      // The next request, and none before it, has the new token.
      const next = page.waitForRequest(request => request.headers().authorization === `Bearer ${long}`)
      await page.getByRole('button', { name: 'FR A/12', exact: true }).click()
      assert.match((await next).url(), /\/invoice\/in_0012\b/)
      const lists = watched.requests.slice(before).filter(url => /\/(invoices|summary|balance)\b/.test(url))
      assert.deepEqual(lists, [])
      const balances = watched.requests.filter(url => /\/balance\b/.test(url))
      assert.equal(balances.length, 2, 'one was refused, one answered')
    },
  )

  test('the element requests each resource once at its first load', options, async t => {
    const { page, watched } = await openHost(
      t,
      withElement(),
      `window.asked = 0
    document.querySelector('fatura-invoices').fetchToken = async () => { asked++; return ${JSON.stringify(everything)} }`,
    )
    await page.waitForRequest(/\/changes\?.*wait=25/)
    await page.locator('.owed-sum').first().waitFor()
    await page.locator('figure').waitFor()
    assert.equal(await page.evaluate('asked'), 1)
    const paths = watched.requests.map(url => url.replace(/[?#].*/, '').replace(/.*\/client\//, ''))
    const twice = paths.filter((path, index) => paths.indexOf(path) !== index)
    // The second is for what changes from then on.
    assert.deepEqual(twice, ['cus_ana/changes'])
  })

  test(
    'the element can leave out parts, begin with lower headings, and use the host’s colours and font',
    options,
    async t => {
      const { page, watched } = await openHost(
        t,
        withElement().replace(
          'customer=',
          'hide="header chart export pay" heading-level="4" ground="none" font="inherit" customer=',
        ),
        `document.querySelector('fatura-invoices').token = ${JSON.stringify(everything)}`,
      )
      await page.getByRole('button', { name: 'FR A/12', exact: true }).waitFor()
      await page.locator('.owed-sum').first().waitFor()
      for (const part of ['header.top', 'figure', '.chart-room', '.download-menu', '.pay', '.switch'])
        assert.equal(await page.locator(part).count(), 0, part)
      assert.ok(!watched.requests.some(url => url.endsWith('/summary')))
      const looks = await page.evaluate(`(() => {
      const { backgroundColor, fontFamily } = getComputedStyle(document.querySelector('fatura-invoices').shadowRoot.querySelector('.fatura'))
      return [backgroundColor, fontFamily === getComputedStyle(document.body).fontFamily]
    })()`)
      assert.deepEqual(looks, ['rgba(0, 0, 0, 0)', true])
      await screenshot(page, 'element-plain')
      await page.getByRole('button', { name: 'FR A/12', exact: true }).click()
      await page.getByRole('heading', { name: 'FR A/12', level: 5 }).waitFor()
      await page.getByRole('heading', { name: 'Documents', level: 6 }).waitFor()
    },
  )

  test(
    'the element calls a failing fetchToken less and less often, and at once when the button is pressed',
    options,
    async t => {
      const { page } = await openHost(
        t,
        withElement(),
        `window.asked = 0
    const element = document.querySelector('fatura-invoices')
    element.addEventListener('fatura:error', ({ detail }) => { window.told = detail.message })
    element.fetchToken = async () => {
      asked++
      if (!window.isReady) throw new Error('not now')
      return ${JSON.stringify(everything)}
    }`,
        page => page.clock.install(),
      )
      await page.getByRole('heading', { name: 'This site did not open your invoices' }).waitFor()
      assert.equal(await page.evaluate('told'), 'fetchToken failed: not now')
      // At once, and then after 15, 45, 105, 165, … 585 seconds.
      await page.clock.runFor(590_000)
      assert.equal(await page.evaluate('asked'), 12)
      await page.evaluate('isReady = true')
      await page.getByRole('button', { name: 'Try again' }).click()
      await page.getByRole('button', { name: 'FR A/12', exact: true }).waitFor()
      assert.equal(await page.evaluate('asked'), 13)
    },
  )

  for (const [what, given, said] of [
    ['nothing', 'undefined', /^fetchToken gave undefined; it must return a token/],
    ['an object', '{ token: 1 }', /^fetchToken gave object;/],
    ['a text that is no token', '"<!doctype html>"', /^fetchToken gave a text that is no token;/],
  ] as const)
    test(
      `the element tells host and reader that the host is at fault when fetchToken gives ${what}`,
      options,
      async t => {
        const { page, watched } = await openHost(
          t,
          withElement(),
          `const element = document.querySelector('fatura-invoices')
      element.addEventListener('fatura:error', ({ detail }) => { window.told = detail.message })
      element.fetchToken = () => window.isReady ? ${JSON.stringify(everything)} : ${given}`,
        )
        await page.getByRole('heading', { name: 'This site did not open your invoices' }).waitFor()
        assert.match(String(await page.evaluate('told')), said)
        assert.equal(watched.problems.length, 1)
        await screenshot(page, 'element-no-token')
        await page.evaluate('isReady = true')
        await page.getByRole('button', { name: 'Try again' }).click()
        await page.getByRole('button', { name: 'FR A/12', exact: true }).waitFor()
      },
    )

  for (const [what, script, said] of [
    ['no token', '', /has no token: set its property fetchToken/],
    [
      'a token that names no customer',
      `element.token = ${JSON.stringify(everything)}`,
      /the attribute customer must/,
    ],
  ] as const)
    test(`the element with ${what} reports this mistake in the console and by an event`, options, async t => {
      const { page, watched } = await openHost(
        t,
        withElement().replace(' customer="cus_ana"', ''),
        `const element = document.querySelector('fatura-invoices')
      element.addEventListener('fatura:error', ({ detail }) => { window.told = detail.message })
      ${script}`,
        page => page.clock.install(),
      )
      await page.locator('.loading').waitFor()
      assert.deepEqual(watched.problems, [])
      await page.clock.runFor(3_000)
      await page.getByRole('heading', { name: 'This site did not open your invoices' }).waitFor()
      assert.match(String(await page.evaluate('told')), said)
      assert.match(watched.problems.join(), said)
      // What was forgotten may still come.
      await page.evaluate(
        `Object.assign(document.querySelector('fatura-invoices'), { token: ${JSON.stringify(signer.token())} })`,
      )
      await page.getByRole('button', { name: 'FR A/12', exact: true }).waitFor()
    })

  test('the element gives a chosen invoice to the host by an event', options, async t => {
    const { page, watched } = await openHost(
      t,
      withElement().replace('customer=', 'pick lang="pt" customer='),
      `addEventListener('fatura:invoice', ({ detail }) => { window.chosen = detail })
    document.querySelector('fatura-invoices').token = ${JSON.stringify(everything)}`,
    )
    await page.getByRole('button', { name: 'Escolher a fatura FT-0011' }).click()
    assert.equal(await page.evaluate('chosen.id'), 'in_0011')
    await page.getByText('Foi escolhida a fatura FT-0011.').waitFor()
    assert.deepEqual(watched.problems, [])
  })

  const frame = () =>
    `<iframe title="Invoices" src="${service.address}/?pick=1#t=${everything}&amp;c=cus_ana"></iframe>`
  const listen = `addEventListener('message', ({ data, origin }) => { window.got = { data, origin } })`

  test(
    'a page of an allowed origin shows the billing page in a frame, and receives the chosen invoice',
    options,
    async t => {
      const { page, watched } = await openHost(t, frame(), listen)
      await page.frameLocator('iframe').getByRole('button', { name: 'Choose invoice FT-0010' }).click()
      await page.waitForFunction('window.got')
      assert.equal(await page.evaluate('got.origin'), service.address)
      assert.equal(await page.evaluate('got.data.type'), 'fatura:invoice')
      assert.equal(await page.evaluate('got.data.invoice.number'), 'FT-0010')
      assert.deepEqual(watched.problems, [])
    },
  )

  test(
    'a page of an origin that is not allowed can neither show the frame nor receive an invoice',
    options,
    async t => {
      const context = await (await browser()).newContext()
      t.after(() => context.close())
      const page = await context.newPage()
      hosted.set('/elsewhere', `<!doctype html>${frame()}<script src="/elsewhere.js"></script>`)
      hosted.set('/elsewhere.js', listen)
      const problems: string[] = []
      page.on('console', message => problems.push(message.text()))
      await page.goto(`${origin.replace('127.0.0.1', 'localhost')}/elsewhere`)
      await page.waitForLoadState('networkidle')
      assert.match(problems.join('\n'), /frame-ancestors/)
      assert.equal(await page.frameLocator('iframe').getByRole('button').count(), 0)
      assert.equal(await page.evaluate('window.got'), undefined)
    },
  )

  test('the billing page outside of a frame has no button to choose an invoice', options, async t => {
    const context = await (await browser()).newContext({ locale: 'en-GB' })
    t.after(() => context.close())
    const page = await context.newPage()
    await page.goto(`${service.address}/?pick=1#t=${everything}&c=cus_ana`)
    await page.getByRole('link', { name: 'FR A/12' }).waitFor()
    assert.equal(await page.getByRole('button', { name: /Choose/ }).count(), 0)
  })

  test(
    'a customer link shows its customer, and a link for one invoice shows only that invoice',
    options,
    async t => {
      const context = await (await browser()).newContext({ locale: 'en-GB' })
      t.after(() => context.close())
      const page = await context.newPage()
      const watched = await watchPage(page)
      await page.goto(`${service.address}/#t=${signer.token()}`)
      await page.getByRole('link', { name: 'FR A/12' }).waitFor()
      // Another link opened in the same tab.
      await page.goto(`${service.address}/#t=${signer.token({ invoice: 'in_0012' })}`)
      await page.getByRole('heading', { name: 'FR A/12' }).waitFor()
      assert.equal(page.url(), `${service.address}/`)
      assert.equal(await page.getByRole('link').count(), 0)
      // It is said that something else was open, and there is a way back.
      await page.getByText('A link took the place of what was open before.').waitFor()
      await page.getByRole('button', { name: 'Back to what was open' }).click()
      await page.getByRole('link', { name: 'FR A/12' }).waitFor()
      assert.equal(await page.getByText('A link took the place').count(), 0)
      // A newer link to the same is no change.
      await page.goto(`${service.address}/#t=${signer.token({ jti: 2 })}`)
      await page.getByRole('link', { name: 'FR A/12' }).waitFor()
      assert.equal(await page.getByText('A link took the place').count(), 0)
      await page.goto(`${service.address}/#t=${signer.token({ invoice: 'in_0012' })}`)
      await page.getByRole('heading', { name: 'FR A/12' }).waitFor()
      const arrived = page.waitForEvent('download')
      await page.getByRole('button', { name: 'Payment summary (Stripe)' }).click()
      assert.equal((await arrived).suggestedFilename(), 'FT-0012 in_0012.pdf')
      assert.deepEqual(watched.problems, [])

      const iat = Math.floor(Date.now() / 1000)
      await page.goto(`${service.address}/#t=${signer.token({ iat: iat - 900, exp: iat - 300 })}`)
      await page.getByRole('heading', { name: 'Your access has expired' }).waitFor()
    },
  )

  test('a broken link is reported, with the advice to get a new link', options, async t => {
    const context = await (await browser()).newContext({ locale: 'en-GB' })
    t.after(() => context.close())
    const page = await context.newPage()
    const [header = '', payload = ''] = signer.token().split('.')
    for (const garbage of ['x', '%00', 'fat_x', `${header}.${payload.slice(0, 30)}`, `${header}.!.x`]) {
      await page.goto('about:blank')
      await page.goto(`${service.address}/#t=${garbage}`)
      await page.getByRole('heading', { name: 'This link is broken or has expired' }).waitFor()
      await page.getByText('Ask for a new one where you got this one').waitFor()
      assert.equal(await page.locator('.sign-in').count(), 0, garbage)
    }
    // A whole access token does not tell its customer: the link must.
    await page.goto(`${service.address}/#t=${everything}`)
    await page.getByText('Open the link that you were given').waitFor()
    await page.goto(`${service.address}/#t=${everything}&c=cus_ana`)
    await page.getByRole('link', { name: 'FR A/12' }).waitFor()
    // A broken link closes nothing that is open.
    await page.goto(`${service.address}/#t=x`)
    await page.getByRole('button', { name: 'Back to what was open' }).click()
    await page.getByRole('link', { name: 'FR A/12' }).waitFor()
  })
})
