/** The example of a reverse proxy in docs/access.md, as it stands there, before a running service. Only its TLS is left out. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createCli, eventually, get } from '../support/clients/cli.ts'
import { countConnections } from '../support/clients/raw-client.ts'
import { freePort } from '../support/databases/postgres-server.ts'
import { makeInvoice } from '../support/worlds/records.ts'

const isInstalled = spawnSync('nginx', ['-v']).status === 0

async function startNginx(t: TestContext, port: number, upstreamPort: number): Promise<void> {
  const [, example = ''] =
    /```nginx\n([^`]+)```/.exec(readFileSync(join(import.meta.dirname, '../../docs/access.md'), 'utf8')) ?? []
  const site = example
    .replace('listen 443 ssl;', `listen 127.0.0.1:${port};`)
    .replaceAll(/^ *ssl_.*$/gm, '')
    .replace('127.0.0.1:3000', `127.0.0.1:${upstreamPort}`)
  assert.ok(site.includes(String(upstreamPort)), 'the example names the service')
  const folder = await mkdtemp(join(tmpdir(), 'fatura-nginx-'))
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  await writeFile(
    join(folder, 'nginx.conf'),
    `daemon off; master_process off; pid ${folder}/pid; error_log stderr; events {}
     http { access_log off; ${temporary.map(name => `${name}_temp_path ${folder}/${name};`).join(' ')}
     ${site} }`,
  )
  const nginx = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], { stdio: 'inherit' })
  const exited = once(nginx, 'exit')
  t.after(async () => {
    nginx.kill()
    await exited
    await rm(folder, { recursive: true })
  })
}

test('the nginx example forwards the API, the page, the reference and /mcp over few connections', {
  skip: !isInstalled && 'nginx is not installed',
}, async t => {
  const cli = await createCli(t)
  await cli.load(makeInvoice({ id: 'in_1', customer_id: 'cus_ana' }))
  const token = await cli.createToken()
  const api = await cli.serve([], { env: { MCP: 'on', TRUSTED_PROXIES: '127.0.0.1' } })
  const port = await freePort()
  await startNginx(t, port, api.port)
  const address = `http://127.0.0.1:${port}`
  await eventually('nginx listens', () =>
    get(`${address}/live`).then(
      ({ status }) => status === 200,
      () => false,
    ),
  )
  const list = '/api/v1/client/cus_ana/invoices'
  for (const path of [list, '/', '/docs', '/llms.txt', '/fatura-invoices.js', '/api/v1/openapi.json'])
    assert.equal((await get(address + path, token)).status, 200, path)
  const { json, headers } = await get(address + list, token)
  assert.equal(json.invoices[0].id, 'in_1')
  const unchanged = { authorization: `Bearer ${token}`, 'if-none-match': headers.get('etag') ?? '' }
  assert.equal((await fetch(address + list, { headers: unchanged })).status, 304)
  const called = await fetch(`${address}/mcp`, {
    method: 'POST',
    headers: {
      ...{ authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  })
  assert.equal(called.status, 200, await called.text())
  assert.equal(countConnections(api.port), 1, 'one connection to the service is kept and used again')
})
