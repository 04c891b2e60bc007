/** The programs of docs/page.md, as they stand there: the backends as processes, a page by the rules of a browser, the element in one. */
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { lacksChromium, startBrowser } from '../support/clients/browser.ts'
import { fetchFrom } from '../support/clients/browser-fetch.ts'
import { createCli, eventually, get } from '../support/clients/cli.ts'
import { makeInvoice } from '../support/worlds/records.ts'

const root = new URL('../..', import.meta.url).pathname
const guide = await readFile(join(root, 'docs/page.md'), 'utf8')

const sections = {
  element: 'Let your customers see their invoices',
  own: 'A page of your own',
}

function codeOf(language: string, section: keyof typeof sections): string {
  const text = guide.split(/^## /m).find(part => part.startsWith(`${sections[section]}\n`)) ?? ''
  const [, code] = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'ms').exec(text) ?? []
  assert.ok(code !== undefined, `the guide has a block of ${language}`)
  return code
}

test('an app with the backend and page of docs/page.md shows a user’s invoices', async t => {
  const [backend, page] = [codeOf('js', 'element'), codeOf('html', 'own')]
  for (const code of [backend, page]) assert.ok(code.trim().split('\n').length <= 22, 'some twenty lines')
  const cli = await createCli(t)
  await cli.load(
    makeInvoice({ id: 'in_1', number: 'A-1', total_cents: 12_300, currency: 'eur', status: 'paid' }),
    makeInvoice({ id: 'in_2', number: null, total_cents: 500, currency: 'jpy', status: 'draft' }),
    makeInvoice({ id: 'in_3', number: 'R-1', customer_id: 'cus_rui' }),
  )
  const { stdout: key } = await cli.run(['key', 'add', 'my-app'])
  const [servicePort, appPort] = await takeFreePorts(2)
  const [publicUrl, origin] = [`http://127.0.0.1:${servicePort}`, `http://127.0.0.1:${appPort}`]
  const env = { PUBLIC_URL: publicUrl, CORS_ORIGINS: origin, PORT: String(servicePort) }
  const service = cli.start(['serve'], { env })
  await service.waitFor(/"msg":"listening"/)
  await startBackend(t, cli.folder, { CUSTOMER_LINK_KEY: key, PUBLIC_URL: publicUrl, PORT: String(appPort) })
  await eventually('the backend listens', () =>
    get(origin).then(
      () => true,
      () => false,
    ),
  )

  // The page comes from the backend, and its script runs with the rights of that origin.
  const { text } = await get(origin)
  assert.equal(text, page)
  const [, script = ''] = /<script type="module">(.*)<\/script>/s.exec(text) ?? []
  const run = await loadScript(cli.folder, script)
  const items = await run(fetchFrom(origin, 'user=ana'))
  assert.deepEqual(items.sort(), ['A-1 · €123.00 · paid', 'draft · ¥500 · draft'])
  // A page of another origin gets nothing, nor does who is not signed in, nor a token for another customer.
  await assert.rejects(run(fetchFrom('http://127.0.0.1:9', 'user=ana')), TypeError)
  await assert.rejects(run(fetchFrom(origin)))
  const { json: access } = await getAs(origin, 'user=ana')
  const other = `${publicUrl}/api/v1/client/cus_rui/invoices`
  assert.equal((await get(other, access.token)).status, 403)

  // What went wrong can be read by the page.
  await assert.rejects(
    run(async (path, options) =>
      path === '/invoices-token'
        ? new Response(JSON.stringify({ ...access, api: publicUrl, token: `${access.token}x` }))
        : fetchFrom(origin)(path, options),
    ),
    /token.*\(req_[\w-]+\)/i,
  )

  await t.test('the element shows the same invoices', { skip: lacksChromium, timeout: 600_000 }, async t => {
    const element = codeOf('html', 'element').replaceAll('https://billing.example.com', publicUrl)
    await writeFile(join(cli.folder, 'page.html'), element)
    const context = await (await startBrowser(t)).newContext()
    await context.addCookies([{ name: 'user', value: 'ana', url: origin }])
    const shown = await context.newPage()
    await shown.goto(origin)
    await shown.getByRole('button', { name: 'A-1', exact: true }).waitFor({ timeout: 60_000 })
    assert.equal(await shown.locator('.company').innerText(), 'Aurora Software')
  })

  const list = `${publicUrl}/api/v1/client/cus_ana/invoices`
  for (const { language, needs, run, print } of others)
    await t.test(
      `a backend in ${language} signs the same token`,
      {
        skip: isThere(...needs) ? false : `${needs.flat().join(' ')} fails here`,
      },
      async () => {
        const code = codeOf(language, 'element')
        assert.ok(code.trim().split('\n').length <= 13, 'some ten lines')
        const env = { ...process.env, KEY: key, URL: publicUrl }
        const token = execFileSync(run[0], [...run[1], `${code}\n${print}`], { env, encoding: 'utf8' }).trim()
        assert.equal((await get(list, token)).status, 200)
        assert.equal((await get(list.replace('cus_ana', 'cus_rui'), token)).status, 403)
      },
    )
})

type Command = [program: string, args: string[]]

/** Other languages: a command that fails without what the code needs, and one that runs code. */
const others: { language: string; needs: Command; run: Command; print: string }[] = [
  {
    language: 'python',
    needs: ['python3', ['-c', 'import cryptography.hazmat.primitives.asymmetric.ed25519']],
    run: ['python3', ['-c']],
    print: 'import os; print(link_token(os.environ["KEY"], os.environ["URL"], "cus_ana"))',
  },
  {
    language: 'php',
    needs: ['php', ['-r', "exit(function_exists('sodium_crypto_sign_detached') ? 0 : 1);"]],
    run: ['php', ['-r']],
    print: "echo link_token(getenv('KEY'), getenv('URL'), 'cus_ana');",
  },
  {
    language: 'ruby',
    needs: ['ruby', ['-e', "require 'openssl'; require 'json'"]],
    run: ['ruby', ['-e']],
    print: "puts link_token(ENV['KEY'], ENV['URL'], 'cus_ana')",
  },
]

function isThere(program: string, args: string[]): boolean {
  return spawnSync(program, args).status === 0
}

type Fetch = ReturnType<typeof fetchFrom>

/** The page's script, with the little of a document that it uses; gives the items of its list. */
async function loadScript(folder: string, script: string): Promise<(fetch: Fetch) => Promise<string[]>> {
  const file = join(folder, 'page-script.mjs')
  await writeFile(file, `export default async (fetch, document) => {${script}}`)
  const { default: run } = await import(file)
  return async fetch => {
    const items: { textContent: string }[] = []
    const list = { append: (item: { textContent: string }) => items.push(item) }
    await run(fetch, { createElement: () => ({ textContent: '' }), querySelector: () => list })
    return items.map(({ textContent }) => textContent)
  }
}

async function getAs(origin: string, cookie: string) {
  const response = await fetch(`${origin}/invoices-token`, { headers: { cookie } })
  return { json: (await response.json()) as { customer: string; token: string } }
}

/** As an app has it: with the package under node_modules. */
async function startBackend(t: TestContext, folder: string, env: Record<string, string>): Promise<void> {
  await writeFile(join(folder, 'app.js'), codeOf('js', 'element'))
  await writeFile(join(folder, 'page.html'), codeOf('html', 'own'))
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  await mkdir(join(folder, 'node_modules'))
  await symlink(root, join(folder, 'node_modules/fatura'))
  const child = spawn(process.execPath, ['app.js'], {
    cwd: folder,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const ended = new Promise(resolve => child.once('close', resolve))
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
}

async function takeFreePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map(server => new Promise(resolve => server.once('listening', resolve))))
  const ports = servers.map(server => (server.address() as AddressInfo).port)
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
  return ports
}
