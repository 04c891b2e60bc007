/** The settings of an identity provider and of customer links, as the program reads them. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { Setting } from '../../src/cli/settings/settings.ts'
import { openWriteStore } from '../../src/store/engines.ts'
import { assertOneLine, createCli, eventually } from '../support/clients/cli.ts'
import { makeLinkSigner, publicUrl, startProvider } from '../support/worlds/identity.ts'
import { makeInvoice } from '../support/worlds/records.ts'
import { refusalOf } from '../support/worlds/settings.ts'

const good = {
  AUTH_JWKS_URL: 'https://login.example.com/jwks.json?p=1',
  AUTH_ISSUER: 'https://login.example.com/',
  AUTH_AUDIENCE: 'fatura',
}

describe('the settings of an identity provider', { concurrency: 3 }, () => {
  test('stop the start with one line that names them, when they are wrong', async t => {
    const cli = await createCli(t)
    const wrong: [env: Record<string, string>, message: RegExp][] = [
      [{ AUTH_JWKS_URL: 'login.example.com' }, /^fatura: AUTH_JWKS_URL must be an address such as https/],
      [{ AUTH_SCOPE: 'two scopes' }, /^fatura: AUTH_SCOPE must be one scope/],
      [{ AUTH_TYP: 'at jwt' }, /^fatura: AUTH_TYP must be a token type/],
      [{ PUBLIC_URL: 'http://billing.example.com' }, /^fatura: PUBLIC_URL must begin with https/],
      [
        { PUBLIC_URL: 'https://example.com/billing' },
        /^fatura: PUBLIC_URL must be an address such as \S+, without a path, .*, not 'https:\/\/example.com\/billing'/,
      ],
      [{ AUTH_ISSUER: '' }, /^fatura: AUTH_ISSUER must also be set\. /],
    ]
    for (const [env, message] of wrong)
      assertOneLine(await cli.run(['serve', '--migrate'], { env: { PORT: '0', ...good, ...env } }), message)
    const others: [setting: Setting, value: string, message: RegExp][] = [
      ['AUTH_JWKS_URL', 'http://login.example.com/', /^AUTH_JWKS_URL must begin with https/],
      ['AUTH_JWKS_URL', 'http://127.0.0.1.example.com/', /^AUTH_JWKS_URL must begin with https/],
      ['AUTH_JWKS_URL', 'https://user:canary@login.example.com/', /^AUTH_JWKS_URL must be(?!.*canary)/],
      ['PUBLIC_URL', 'https://billing.example.com/?a=b', /^PUBLIC_URL must be an address such as/],
    ]
    for (const [setting, value, message] of others) assert.match(refusalOf(setting, value), message)
    assertOneLine(
      await cli.run(['serve'], { env: { AUTH_AUDIENCE: 'x' } }),
      /^fatura: AUTH_JWKS_URL and AUTH_ISSUER must also be set\. An identity provider needs all three of AUTH_JWKS_URL, AUTH_ISSUER and AUTH_AUDIENCE\.$/m,
    )
    assertOneLine(await cli.run(['up'], { env: { AUTH_SCOPE: 'x' } }), /^fatura: AUTH_JWKS_URL and /)
  })

  test('let in the provider’s JWTs, and customer links for a PUBLIC_URL with or without a final /', async t => {
    const provider = await startProvider(t)
    const cli = await createCli(t)
    await cli.load(makeInvoice({ id: 'in_1' }))
    const store = await openWriteStore(`sqlite:${cli.folder}/data/fatura.db`)
    const signer = makeLinkSigner(['cus_ana'])
    await store.saveKey(signer.key)
    await store.close()
    const { jwksUrl, issuer, audience } = provider.options
    const env = {
      ...{ AUTH_JWKS_URL: jwksUrl, AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience },
      ...{
        AUTH_CUSTOMER_CLAIM: 'customers',
        AUTH_SCOPE: 'read',
        AUTH_TYP: 'JWT',
        PUBLIC_URL: `${publicUrl}/`,
      },
    }
    const api = await cli.serve([], { env })
    const path = '/api/v1/client/cus_ana/invoices'
    const token = provider.token({ customers: ['cus_ana'], scope: 'read' }, { typ: 'JWT' })
    // Until the provider's keys were read in time, which they may not be at once on a busy machine, JWTs wait.
    await eventually('the keys are there', async () => (await api.get(path, token)).status !== 503)
    assert.equal((await api.get(path, token)).json.total, 1)
    assert.equal((await api.get(path, provider.token({ customers: 'cus_ana' }, { typ: 'JWT' }))).status, 403)
    assert.equal((await api.get(path, signer.token())).json.total, 1)
    assert.equal((await api.get(path, signer.token({ invoice: 'in_1' }))).status, 403)
    const { json } = await api.get('/.well-known/oauth-protected-resource')
    assert.deepEqual([json.resource, json.authorization_servers], [publicUrl, [issuer]])
    await api.stop('SIGINT')
    assert.doesNotMatch(api.stdout, /eyJ[\w-]{12}|canary/)
  })

  test('are the only reason to load the library jose, which is slow to load', async t => {
    const cli = await createCli(t)
    const hook = join(cli.folder, 'hook.mjs')
    await writeFile(
      hook,
      `import { registerHooks } from 'node:module'
       registerHooks({
         resolve(name, context, next) {
           if (name === 'jose') console.log('jose is loaded')
           return next(name, context)
         },
       })`,
    )
    for (const PUBLIC_URL of ['', publicUrl]) {
      const env = { NODE_OPTIONS: `--import=${hook}`, PUBLIC_URL }
      const api = await cli.serve(['--migrate'], { env })
      assert.equal((await api.get('/live')).status, 200)
      await api.stop('SIGINT')
      assert.equal(api.stdout.includes('jose is loaded'), PUBLIC_URL !== '')
    }
  })
})
