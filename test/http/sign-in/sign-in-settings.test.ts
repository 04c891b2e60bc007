/** Sign-in by e-mail from its settings on. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertOneLine, createCli } from '../../support/clients/cli.ts'
import { startMailServer } from '../../support/upstreams/mail-server.ts'
import { makeInvoice } from '../../support/worlds/records.ts'
import { refusalOf } from '../../support/worlds/settings.ts'

const PUBLIC_URL = 'https://billing.example.com'
const SMTP_URL = 'smtp://ana:canary@127.0.0.1:2525'

describe('the settings of the sign-in by e-mail', { timeout: 600_000 }, () => {
  it('stop the start with one line when links, the page or a sender are missing', async t => {
    const cli = await createCli(t)
    await cli.load()
    const { stdout: CUSTOMER_LINK_KEY } = await cli.run(['key', 'add', 'mail', '--create'])
    const whole = { SMTP_URL, SMTP_FROM: 'contas@aurora.example', PUBLIC_URL, CUSTOMER_LINK_KEY }
    const refused: [Record<string, string>, RegExp][] = [
      [{ CUSTOMER_LINK_KEY: '' }, /CUSTOMER_LINK_KEY.*fatura key add.*PUBLIC_URL/],
      [{ PUBLIC_URL: '' }, /CUSTOMER_LINK_KEY.*PUBLIC_URL/],
      [{ WEB: 'off' }, /leave WEB on/],
      [{ SMTP_FROM: '' }, /SMTP_FROM/],
      [{ SMTP_FROM: '', PAGE_SUPPORT: 'https://aurora.example/help' }, /SMTP_FROM/],
    ]
    for (const [wrong, pattern] of refused)
      assertOneLine(await cli.run(['serve', '--port', '0'], { env: { ...whole, ...wrong } }), pattern)
    for (const wrong of ['smtp.example.com', 'https://smtp.example.com', 'smtps://'])
      assert.match(refusalOf('SMTP_URL', wrong), /^SMTP_URL must be .*smtp:/)
    assert.match(refusalOf('SMTP_FROM', 'Ana <ana@aurora.example>'), /^SMTP_FROM must be a mail address/)
  })

  it('take the page’s contact and the company’s name as sender without SMTP_FROM', async t => {
    const mail = await startMailServer(t)
    const cli = await createCli(t)
    await cli.load(makeInvoice({ customer_email: 'ana@padaria.example' }))
    const { stdout: CUSTOMER_LINK_KEY } = await cli.run(['key', 'add', 'mail', '--create'])
    const page = { PAGE_SUPPORT: 'faturas@aurora.example', PAGE_NAME: 'Aurora Software' }
    const env = { SMTP_URL: mail.url, PUBLIC_URL, CUSTOMER_LINK_KEY, ...page }
    const serve = cli.start(['serve', '--port', '0'], { env })
    const [, address = ''] = await serve.waitFor(/"address":"(http:[^"]+)","msg":"listening"/)
    const { status } = await fetch(`${address}/sign-in`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"email":"ana@padaria.example"}',
    })
    assert.equal(status, 202)
    const { from, subject } = await mail.waitFor(1)
    assert.deepEqual(
      [from, subject],
      ['faturas@aurora.example', 'As suas faturas · Your invoices · Aurora Software'],
    )
    assert.equal((await serve.stop()).code, 0)
  })

  it('turn sign-in off by default, and its path answers 404', async t => {
    const cli = await createCli(t)
    await cli.load()
    const serve = cli.start(['serve', '--port', '0'])
    const [, address = ''] = await serve.waitFor(/"address":"(http:[^"]+)","msg":"listening"/)
    assert.equal((await fetch(`${address}/sign-in`, { method: 'POST' })).status, 404)
    await serve.stop()
  })
})
