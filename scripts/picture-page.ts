/** Makes docs/page.png: the billing page of the demo's first customer. The picture holds a hash of the page that it shows. */
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { startBrowser } from '../test/support/clients/browser.ts'
import './build.ts'
import { hashPage, picture, withText } from './page-picture.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const demo = spawn(process.execPath, ['bin/fatura.js', 'demo', '--port', '0'], { cwd: root })
try {
  const address = await new Promise<string>((resolve, reject) => {
    let text = ''
    demo.stdout.on('data', chunk => {
      text += chunk
      const [link] = /http:\S+\/#t=\S+/.exec(text) ?? []
      if (link !== undefined && text.includes('Serving at')) resolve(link)
    })
    demo.on('exit', code => reject(new Error(`fatura demo ended with ${code}`)))
  })
  const browser = await startBrowser({ after: () => {} })
  try {
    const page = await browser.newPage({ viewport: { width: 1200, height: 860 }, locale: 'en-GB' })
    await page.goto(address)
    await page.locator('.invoices').waitFor()
    writeFileSync(picture, withText(await page.screenshot(), hashPage()))
  } finally {
    await browser.close()
  }
} finally {
  demo.removeAllListeners('exit')
  demo.kill('SIGINT')
}
