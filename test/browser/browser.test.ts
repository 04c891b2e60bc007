/** The browser itself: without text on its pages, every other test here would fail for a reason that is hard to see. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { findChromium, lacksChromium, startBrowser } from '../support/clients/browser.ts'

describe('the browser of the tests', { skip: lacksChromium }, () => {
  test('draws text', async t => {
    const why = (what: string) =>
      `${findChromium()} ${what}: it finds no font, or a library is missing. Remove tools/node_modules and run this again, or set CHROMIUM_PATH to a Chromium that works.`
    const browser = await startBrowser(t)
    const page = await browser.newPage()
    await page.setContent('<span>iiiii</span><br><span>WWWWW</span>')
    const [narrow = 0, wide = 0] = await page
      .locator('span')
      .evaluateAll(spans => spans.map(span => span.getBoundingClientRect().width))
      .catch(error => assert.fail(`${why('stops when it draws text')}\n${error}`))
    assert.ok(narrow > 0 && wide > 2 * narrow, why(`draws no letters (${narrow} and ${wide} px wide)`))
    const drawn = await page.screenshot().catch(error => assert.fail(`${why('takes no picture')}\n${error}`))
    await page.setContent('')
    const empty = await page.screenshot()
    assert.ok(!drawn.equals(empty), why('draws nothing where text stands'))
  })
})
