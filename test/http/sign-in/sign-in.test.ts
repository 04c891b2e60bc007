/** Sign-in by e-mail, against a real mail server. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { wholeFile } from '../../support/clients/billing-page.ts'
import { engines } from '../../support/databases/engines.ts'
import { startMailServer } from '../../support/upstreams/mail-server.ts'
import { makeLinkSigner, publicUrl } from '../../support/worlds/identity.ts'
import { makeRecord } from '../../support/worlds/records.ts'
import { startService } from '../../support/worlds/service.ts'

const record = (id: string, customer_id: string, customer_email: string | null, day: number) =>
  makeRecord({
    ...{ id, customer_id, customer_email, display_name: `Firma ${customer_id}` },
    issued_at: new Date(Date.UTC(2026, 9, day)).toISOString(),
  })

for (const engine of engines)
  describe(`sign-in by e-mail on ${engine.name}`, { timeout: 600_000 }, async () => {
    const mail = await startMailServer(wholeFile)
    const signer = makeLinkSigner()
    const { d = '' } = signer.private.export({ format: 'jwk' })
    const { kid, x } = signer.key
    const service = await startService(wholeFile, engine, {
      publicUrl,
      mail: {
        ...{ smtpUrl: mail.url, from: 'contas@aurora.example', company: 'Aurora <Software>', publicUrl },
        key: { kty: 'OKP', crv: 'Ed25519', kid, x, d },
      },
      // A test's own requests do not count for the others.
      trustedProxies: ['127.0.0.1'],
      records: [
        record('in_1', 'cus_ana', 'Ana@Padaria.example', 1),
        record('in_2', 'cus_two', 'contas@gabinete.example', 1),
        record('in_3', 'cus_three', 'contas@gabinete.example', 2),
        record('in_4', 'cus_moved', 'former@padaria.example', 1),
        record('in_5', 'cus_moved', 'now@padaria.example', 2),
        record('in_6', 'cus_none', null, 1),
      ],
    })
    await service.store.saveKey(signer.key)

    const ask = async (body: unknown, source: string, type = 'application/json') => {
      const answer = await fetch(`${service.address}/sign-in`, {
        method: 'POST',
        headers: { 'content-type': type, 'x-forwarded-for': source },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      })
      return { status: answer.status, headers: answer.headers, text: await answer.text() }
    }
    /** A mail to this address is the last one: what was asked for before it is done with. */
    const lastMail = async (source: string) => {
      const before = mail.mails.length
      await service.save(
        record(`in_${source}`, `cus_of_${source.replaceAll('.', '_')}`, `${source}@x.example`, 1),
      )
      await ask({ email: `${source}@x.example` }, source)
      for (let count = before + 1; ; count++) {
        const { to } = await mail.waitFor(count)
        if (to[0] === `${source}@x.example`) return mail.mails.slice(before, count - 1)
      }
    }

    test('sends a link to a customer’s address that opens the invoices, in both languages', async () => {
      const before = mail.mails.length
      const { status, text } = await ask({ email: ' ana@padaria.EXAMPLE' }, '192.0.2.1')
      assert.deepEqual([status, text], [202, '{"status":"accepted"}'])
      const received = await mail.waitFor(before + 1)
      assert.deepEqual([received.from, received.to], ['contas@aurora.example', ['ana@padaria.example']])
      assert.equal(received.subject, 'As suas faturas · Your invoices · Aurora <Software>')
      assert.match(received.text, /Pediu uma ligação para ver as suas faturas de Aurora <Software>\./)
      assert.match(received.text, /You asked for a link to your invoices from Aurora <Software>\./)
      assert.match(received.html, /from Aurora &#60;Software&#62;\./)
      const links = [...received.text.matchAll(/^https:\/\/billing\.example\.com\/#t=(\S+)$/gm)]
      assert.equal(links.length, 2)
      const token = links[0]?.[1] ?? ''
      const read = (customer: string) =>
        fetch(`${service.address}/api/v1/client/${customer}/invoices`, {
          headers: { authorization: `Bearer ${token}` },
        })
      assert.equal((await read('cus_ana')).status, 200)
      assert.equal((await read('cus_two')).status, 403)
      if (process.env.SCREENSHOTS) await writeFile(`${process.env.SCREENSHOTS}/mail.html`, received.html)
    })

    test('sends one mail with both links to an address of two customers', async () => {
      const before = mail.mails.length
      await ask({ email: 'contas@gabinete.example' }, '192.0.2.2')
      const { text } = await mail.waitFor(before + 1)
      for (const name of ['Firma cus_two', 'Firma cus_three'])
        assert.match(text, new RegExp(`Ver as faturas: ${name}:\nhttps:`))
      assert.deepEqual(await lastMail('192.0.2.3'), [])
    })

    test('gives the same answer for every address, and mails only the address of the newest invoice', async () => {
      const answers = []
      for (const email of [
        'now@padaria.example',
        'former@padaria.example',
        'nobody@x.example',
        '%@_',
        "a'--@x.example",
      ])
        answers.push(await ask({ email }, '192.0.2.4'))
      for (const { status, text } of answers) assert.deepEqual([status, text], [202, '{"status":"accepted"}'])
      const [first] = answers
      for (const { headers } of answers)
        assert.deepEqual([...headers.keys()], [...(first?.headers.keys() ?? [])])
      assert.deepEqual(
        (await lastMail('192.0.2.5')).map(({ to }) => to),
        [['now@padaria.example']],
      )
    })

    test('sends at most three mails an hour per e-mail address, and accepts 20 requests per client address', async () => {
      await service.save(record('in_7', 'cus_often', 'often@x.example', 1))
      for (let count = 0; count < 5; count++)
        assert.equal((await ask({ email: 'often@x.example' }, '192.0.2.6')).status, 202)
      assert.equal((await lastMail('192.0.2.7')).length, 3)
      for (let count = 5; count < 20; count++)
        assert.equal((await ask({ email: `${count}@x.example` }, '192.0.2.6')).status, 202)
      const refused = await ask({ email: 'ana@padaria.example' }, '192.0.2.6')
      assert.equal(refused.status, 429)
      assert.ok(Number(refused.headers.get('retry-after')) > 3_000)
    })

    test('refuses a malformed request for a link', async () => {
      const source = '192.0.2.8'
      for (const body of [
        '',
        '{',
        'null',
        '[]',
        '{"email":1}',
        { email: 'ana' },
        { email: 'a@b@c' },
        { email: 'a@x.example, b@x.example' },
        { email: 'a\n@x.example' },
        { email: 'Ana <ana@padaria.example>' },
      ]) {
        const { status, text } = await ask(body, source)
        assert.deepEqual([status, JSON.parse(text).error.param], [400, 'email'], JSON.stringify(body))
      }
      assert.equal((await ask({ email: 'a@x.example' }, source, 'text/plain')).status, 400)
      assert.equal((await ask(JSON.stringify({ email: 'x'.repeat(2_000) }), source)).status, 413)
      const get = await fetch(`${service.address}/sign-in`)
      assert.deepEqual([get.status, get.headers.get('allow')], [405, 'POST, OPTIONS'])
    })

    test('logs a failure of the mail server without the address that it names, and sends the next mail', async () => {
      mail.refuse = true
      assert.equal((await ask({ email: 'ana@padaria.example' }, '192.0.2.9')).status, 202)
      while (!service.logs.some(line => line.includes('links could not be sent by e-mail')))
        await new Promise(resolve => setImmediate(resolve))
      mail.refuse = false
      assert.deepEqual(await lastMail('192.0.2.10'), [])
      for (const line of service.logs) assert.ok(!/#t=|@padaria/i.test(line), line)
    })
  })
