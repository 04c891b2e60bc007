/** Sign-in by e-mail on the page, with a real mail server. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { makeHistory, startPages, wholeFile } from '../support/clients/billing-page.ts'
import { findViolations, lacksChromium, screenshot } from '../support/clients/browser.ts'
import { startMailServer } from '../support/upstreams/mail-server.ts'
import { makeLinkSigner, publicUrl } from '../support/worlds/identity.ts'
import { makeRecord } from '../support/worlds/records.ts'

const mail = await startMailServer(wholeFile)
const signer = makeLinkSigner()
const { d = '' } = signer.private.export({ format: 'jwk' })
const { kid, x } = signer.key
const email = 'ana@padaria.example'
const { service, open } = await startPages({
  publicUrl,
  mail: {
    ...{ smtpUrl: mail.url, from: 'contas@aurora.example', company: 'Aurora Software', publicUrl },
    key: { kty: 'OKP', crv: 'Ed25519', kid, x, d },
  },
  records: [
    ...makeHistory(3),
    makeRecord({
      id: 'in_9',
      number: 'FT-0009',
      issued_at: '2026-10-30T09:00:00.000Z',
      customer_email: email,
    }),
  ],
})
await service.store.saveKey(signer.key)
const options = { timeout: 600_000, skip: lacksChromium }
const iat = Math.floor(Date.now() / 1000) - 900
const expired = signer.token({ iat, exp: iat + 300 })

describe('sign-in by e-mail', { concurrency: 1 }, () => {
  for (const [name, visit, locale] of [
    ['the page without a link', { token: null }, 'en-GB'],
    ['a link that has expired', { token: expired }, 'pt-PT'],
    ['a link that is broken', { token: 'x' }, 'en-GB'],
  ] as const)
    test(`works on ${name}, and the mail’s link opens the invoices`, options, async t => {
      const before = mail.mails.length
      const { page, watched, assertClean } = await open(t, {
        locale,
        viewport: { width: 390, height: 844 },
        ...visit,
      })
      const field = page.getByRole('textbox')
      await field.waitFor()
      assert.equal(await page.getByText('cus_').count(), 0)
      assert.deepEqual(await findViolations(page), [])
      await screenshot(page, `sign-in-${name.replaceAll(' ', '-')}`)
      const button = page.getByRole('button', { name: /^(Send a link|Enviar ligação)$/ })
      await field.fill('ana')
      await button.click()
      await page.getByText(/This is not an e-mail address|Isto não é um endereço de e-mail/).waitFor()
      await field.fill(email)
      await button.click()
      await page.getByText(/a link is on its way|a ligação vai a caminho/).waitFor()
      await screenshot(page, `sign-in-sent-${name.replaceAll(' ', '-')}`)
      const { text } = await mail.waitFor(before + 1)
      const [, fragment = ''] = /^https:\/\/billing\.example\.com\/(#t=\S+)$/m.exec(text) ?? []
      await page.goto('about:blank')
      await page.goto(`${service.address}/${fragment}`)
      await page.getByRole('link', { name: 'FR A/3' }).waitFor()
      assert.ok(watched.requests.length > 0)
      assertClean(/40[01]/)
    })
})
