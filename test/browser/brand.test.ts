/** The page as a company's own: its name, logo, colour and contact. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { demoBrand } from '../../src/cli/commands/demo-systems.ts'
import { bothSystems, makeHistory, startPages } from '../support/clients/billing-page.ts'
import { findViolations, lacksChromium, screenshot } from '../support/clients/browser.ts'
import { assertOneLine, createCli } from '../support/clients/cli.ts'

const hostileName = 'Aurora & <b>Filhos</b> "Lda."'
const records = makeHistory(12)
const { open, service } = await startPages({
  ...bothSystems,
  records,
  brand: { ...demoBrand, name: hostileName },
})
const options = { timeout: 600_000, skip: lacksChromium }

describe('the brand of the page', { concurrency: 2 }, () => {
  test(
    'shows its name, logo, colour, contact, title and icon, beside the customer’s name',
    options,
    async t => {
      for (const colorScheme of ['light', 'dark'] as const) {
        const { page, assertClean } = await open(t, { colorScheme, locale: 'pt-PT' })
        await page.locator('table.invoices tbody tr').first().waitFor()
        assert.equal(await page.title(), `As suas faturas · ${hostileName}`)
        assert.equal(await page.locator('.company').innerText(), hostileName)
        assert.equal(await page.locator('.customer').innerText(), records[0]?.invoice.display_name)
        const logo = page.locator('.company img')
        assert.ok(await logo.evaluate((image: { naturalWidth: number }) => image.naturalWidth > 0))
        assert.equal(
          await page.locator('link[rel=icon]').getAttribute('href'),
          await logo.getAttribute('src'),
          'the icon is the logo',
        )
        assert.equal(await page.locator('.support a').getAttribute('href'), 'mailto:faturas@aurora.example')
        assert.deepEqual(await findViolations(page), [])
        await screenshot(page, `brand-${colorScheme}`)
        assertClean()
      }
      const { page } = await open(t, { viewport: { width: 390, height: 844 } })
      await page.locator('.customer').waitFor()
      await screenshot(page, 'brand-phone')
    },
  )

  test('has an SVG logo that runs no script when it is opened directly', async () => {
    const { text } = await service.get('/', { token: null })
    const [, path = ''] = /rel="icon" href="([^"]+)"/.exec(text) ?? []
    const { headers, status } = await service.get(path, { token: null })
    assert.deepEqual([status, headers['content-type']], [200, 'image/svg+xml'])
    assert.match(String(headers['content-security-policy']), /^default-src 'none'/)
    assert.ok(!text.includes('<b>'))
  })
})

test('an invalid brand setting stops the start with one line', async t => {
  const cli = await createCli(t)
  await writeFile(join(cli.folder, 'large.png'), Buffer.alloc(300_000))
  for (const [name, value, problem] of [
    ['PAGE_ACCENT', '#ffcc00', /^fatura: PAGE_ACCENT must be a darker colour \(its contrast .* is 1\.\d/],
    ['PAGE_ACCENT', 'red', /PAGE_ACCENT must be a colour such as #0a6650/],
    ['PAGE_LOGO', 'none.svg', /PAGE_LOGO must be the path of a file/],
    ['PAGE_LOGO', 'large.png', /PAGE_LOGO must be a file of at most 256 KB/],
    ['PAGE_LOGO', 'logo.html', /PAGE_LOGO must be a file \.svg, \.png, \.jpg or \.webp/],
    ['PAGE_SUPPORT', 'javascript:alert(1)', /PAGE_SUPPORT must be a mail address/],
    ['TIME_ZONE', 'Lisboa', /TIME_ZONE must be the name of a time zone/],
  ] as const)
    assertOneLine(await cli.run(['serve', '--migrate'], { env: { [name]: value } }), problem)
})
