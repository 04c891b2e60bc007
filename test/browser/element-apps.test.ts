/** The element in apps that Vite builds, as the guide says: the code is taken out of docs/page.md. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import react from '@vitejs/plugin-react'
import vue from '@vitejs/plugin-vue'
import type { Page } from 'playwright-core'
import { build, type PluginOption } from 'vite'
import { bothSystems, makeHistory, startPages } from '../support/clients/billing-page.ts'
import { lacksChromium, watchPage } from '../support/clients/browser.ts'

const root = join(import.meta.dirname, '../..')
const guide = readFileSync(join(root, 'docs/page.md'), 'utf8')

/** What the host serves, by path. */
const hosted = new Map<string, string | Buffer>()
/** Requests of a token. */
let asked = 0
const host = createServer((request, response) => {
  const path = request.url ?? ''
  if (path === '/invoices-token') {
    asked++
    return response.setHeader('content-type', 'application/json').end(JSON.stringify({ token: everything }))
  }
  const content = hosted.get(path)
  const type = path.endsWith('.js') ? 'text/javascript' : 'text/html'
  response.writeHead(content === undefined ? 404 : 200, {
    'content-type': `${type}; charset=utf-8`,
    'content-security-policy': `default-src 'none'; script-src 'self' ${service.address}; connect-src 'self' ${service.address}; style-src 'self'`,
  })
  response.end(content)
}).listen(0, '127.0.0.1')
await new Promise(resolve => host.once('listening', resolve))
const origin = `http://127.0.0.1:${(host.address() as AddressInfo).port}`

const { service, browser, everything } = await startPages({
  ...bothSystems,
  records: makeHistory(12),
  corsOrigins: [origin],
})
const folder = await mkdtemp(join(tmpdir(), 'fatura-apps-'))
after(async () => {
  host.closeAllConnections()
  host.close()
  await rm(folder, { recursive: true, force: true })
})
await mkdir(join(folder, 'node_modules'))
for (const name of ['react', 'react-dom', 'vue'])
  await symlink(join(root, 'tools/node_modules', name), join(folder, 'node_modules', name))
await symlink(root, join(folder, 'node_modules/fatura'))

/** The block of code of the guide that stands under a file's name. */
function blockOf(file: string): string {
  const code = guide.split(`\`${file}\`:\n\n\`\`\``)[1]?.split('\n```')[0]
  assert.ok(code !== undefined, `docs/page.md shows ${file}`)
  return code.slice(code.indexOf('\n') + 1)
}

const scriptTag = `<script type="module" src="${service.address}/fatura-invoices.js"></script>`
const isElement = (tag: string) => tag === 'fatura-invoices'

interface App {
  name: string
  files: Record<string, string>
  plugins: PluginOption[]
}

/** The token of these tests is not a link's, so the customer is named. */
const ofAna = (code: string) => code.replace('<fatura-invoices', '<fatura-invoices customer="cus_ana"')

const apps: App[] = [
  { name: 'React 19', files: { 'main.jsx': ofAna(blockOf('main.jsx')) }, plugins: [react()] },
  {
    name: 'Vue 3',
    files: {
      'App.vue': ofAna(blockOf('App.vue')),
      'main.js':
        "import { createApp } from 'vue'\nimport App from './App.vue'\ncreateApp(App).mount('#root')\n",
    },
    plugins: [vue({ template: { compilerOptions: { isCustomElement: isElement } } })],
  },
]

/** The element comes out of the app's own bundle. */
function bundled(app: App): App {
  const files = Object.entries(app.files).map(([name, code]) => [
    name,
    (name.startsWith('main') ? "import 'fatura/element'\n" : '') +
      code.replace('<fatura-invoices', `<fatura-invoices base="${service.address}"`),
  ])
  return { ...app, name: `${app.name} bundled`, files: Object.fromEntries(files) }
}

let built = 0

/** Its last step, for a test that waits for it. */
const begun = "\ndocument.body.dataset.begun = ''\n"

/** Returns the path at which the host serves it. Vite moves the app's own script into the head, so before the element's. */
async function buildApp({ files, plugins }: App, script: string): Promise<string> {
  const base = `/app-${++built}/`
  const app = join(folder, String(built))
  await mkdir(app)
  for (const [name, code] of Object.entries(files))
    await writeFile(join(app, name), /^main/.test(name) ? code + begun : code)
  const main = Object.keys(files).find(name => name.startsWith('main'))
  await writeFile(
    join(app, 'index.html'),
    `<!doctype html><html lang="en"><head><title>App</title></head><body><div id="root"></div>${script}<script type="module" src="/${main}"></script></body></html>`,
  )
  await build({ root: app, base, plugins, configFile: false, logLevel: 'error', build: { minify: false } })
  const dist = join(app, 'dist')
  for (const file of globSync('**/*.*', { cwd: dist }))
    hosted.set(base + file.replace('index.html', ''), readFileSync(join(dist, file)))
  return base
}

async function openApp(t: TestContext, path: string, prepare?: (page: Page) => Promise<unknown>) {
  const context = await (await browser()).newContext({ locale: 'en-GB' })
  t.after(() => context.close())
  context.setDefaultTimeout(300_000)
  const page = await context.newPage()
  const watched = await watchPage(page)
  await prepare?.(page)
  await page.goto(origin + path, { waitUntil: 'commit' })
  return { page, watched }
}

/** The app has done all that it does before the element's script comes. */
async function holdScript(page: Page): Promise<void> {
  await page.route(`${service.address}/fatura-invoices.js`, async route => {
    await page.locator('body[data-begun]').waitFor({ state: 'attached' })
    await route.continue()
  })
}

const options = { timeout: 600_000, skip: lacksChromium }

describe('the element in apps that Vite builds', { concurrency: 1 }, () => {
  for (const app of apps) {
    test(
      `shows invoices in ${app.name} when the app runs before the element is defined`,
      options,
      async t => {
        const path = await buildApp(app, scriptTag)
        asked = 0
        const { page, watched } = await openApp(t, path, holdScript)
        await page.getByRole('button', { name: 'FR A/12', exact: true }).waitFor()
        assert.equal(asked, 1)
        assert.deepEqual(watched.problems, [])
      },
    )

    test(`shows invoices in ${app.name} when it is part of the app’s bundle`, options, async t => {
      const path = await buildApp(bundled(app), '')
      asked = 0
      const { page, watched } = await openApp(t, path)
      await page.getByRole('button', { name: 'FR A/12', exact: true }).waitFor()
      assert.equal(asked, 1)
      assert.deepEqual(watched.problems, [])
      assert.ok(!watched.requests.includes(`${service.address}/fatura-invoices.js`))
    })
  }

  test(
    'names the missing property in the console when React 19 runs without whenDefined',
    options,
    async t => {
      const files = { 'main.jsx': (apps[0]?.files['main.jsx'] ?? '').replace('use(isDefined)', '') }
      const path = await buildApp({ name: '', files, plugins: [react()] }, scriptTag)
      asked = 0
      const told = Promise.withResolvers<string>()
      const { page } = await openApp(t, path, async page => {
        page.on('console', message => {
          if (message.type() === 'error') told.resolve(message.text())
        })
        await holdScript(page)
      })
      assert.match(await told.promise, /has no token: set its property fetchToken.*whenDefined/)
      await page.getByRole('heading', { name: 'This site did not open your invoices' }).waitFor()
      assert.equal(asked, 0)
    },
  )
})
