/** The download routes: the PDF, or a clear JSON error. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import { type Pdf, SourceError, type SourceFailure } from '../../src/sources/source.ts'
import { engines } from '../support/databases/engines.ts'
import { makeRecord, withDocument } from '../support/worlds/records.ts'
import { assertError, shareService, startService } from '../support/worlds/service.ts'

const path = (invoice: string, kind: string) => `/api/v1/client/cus_ana/invoice/${invoice}/${kind}/download`
const pdf = (text: string): Pdf => ({ body: Readable.from([Buffer.from(`%PDF-1.7\n${text}`)]), size: null })
const kinds = ['ix', 'payments'] as const

/** Both systems, each with a PDF for every id it is asked for. */
const working = {
  payments: { fetchLines: async () => null, openPdf: async (id: string) => pdf(`payments ${id}`) },
  documents: { openPdf: async (id: number) => pdf(`ix ${id}`) },
}

/** Both systems, each of which fails as it is told to. */
function failing(retryAfter: number) {
  const next: { failure: SourceFailure } = { failure: 'failed' }
  const openPdf = async (): Promise<Pdf> => {
    throw new SourceError(next.failure, 'words of the upstream alone', { retryAfter })
  }
  return { next, sources: { payments: { fetchLines: async () => null, openPdf }, documents: { openPdf } } }
}

for (const engine of engines) {
  describe(`the download of a PDF on ${engine.name}`, () => {
    const records = [
      makeRecord({ id: 'in_1', number: 'FT 2026/7 é', ...withDocument }),
      makeRecord({ id: 'in_without' }),
      makeRecord({ id: 'in_draft', status: 'draft', number: null }),
      makeRecord({ id: 'in_ixdraft', ...withDocument, ix_status: 'draft' }),
    ]
    const service = shareService(engine, { records, ...working })

    test('delivers each system’s PDF as application/pdf under the invoice number', async () => {
      for (const [kind, content] of [
        ['payments', 'payments in_1'],
        ['ix', 'ix 4711'],
      ] as const) {
        const { status, headers, text } = await service().get(path('in_1', kind))
        assert.deepEqual(
          [status, headers['content-type'], text],
          [200, 'application/pdf', `%PDF-1.7\n${content}`],
        )
        assert.equal(
          headers['content-disposition'],
          `attachment; filename="FT 2026-7 e in_1.pdf"; filename*=UTF-8''FT%202026-7%20%C3%A9%20in_1.pdf`,
        )
        assert.equal(headers['cache-control'], 'private, no-store')
      }
    })

    test('answers document_not_found for a missing document, and invoice_not_found for a missing invoice', async () => {
      assertError(await service().get(path('in_without', 'ix')), 404, 'document_not_found')
      for (const kind of kinds)
        assertError(await service().get(path('in_none', kind)), 404, 'invoice_not_found')
    })

    test('answers 409 document_not_issued for a draft', async () => {
      assertError(await service().get(path('in_draft', 'payments')), 409, 'document_not_issued')
      assertError(await service().get(path('in_ixdraft', 'ix')), 409, 'document_not_issued')
      assert.equal((await service().get(path('in_ixdraft', 'payments'))).status, 200)
    })

    test('has one answer for each failure of the upstream, without the upstream’s text', async t => {
      const answers = [
        ['not_ready', 503, 'document_not_ready'],
        ['failed', 502, 'upstream_failed'],
        ['timeout', 504, 'upstream_timeout'],
        ['missing', 404, 'document_not_found'],
      ] as const
      const { next, sources } = failing(7)
      const service = await startService(t, engine, { records, ...sources })
      for (const [failure, status, code] of answers) {
        next.failure = failure
        for (const kind of kinds) {
          const answer = await service.get(path('in_1', kind))
          assertError(answer, status, code)
          assert.doesNotMatch(answer.text, /words of the upstream/)
          assert.equal(answer.headers['retry-after'], failure === 'missing' ? undefined : '7')
        }
      }
    })

    test('answers 502 upstream_failed when the system is not connected', async t => {
      const service = await startService(t, engine, { records })
      for (const kind of kinds) assertError(await service.get(path('in_1', kind)), 502, 'upstream_failed')
    })

    test('needs the same Bearer token as the other routes', async () => {
      const bobs = await service().createToken({ customers: ['cus_bob'] })
      for (const kind of kinds) {
        assertError(await service().get(path('in_1', kind), { token: null }), 401, 'missing_token')
        assertError(await service().get(path('in_1', kind), { token: bobs }), 403, 'insufficient_scope')
      }
    })

    test('has different file names for two invoices with one number', async t => {
      const records = ['in_a', 'in_b'].map(id => makeRecord({ id, number: '2026-7' }))
      const service = await startService(t, engine, { records, ...working })
      const names = await Promise.all(
        ['in_a', 'in_b'].map(
          async id => (await service.get(path(id, 'payments'))).headers['content-disposition'],
        ),
      )
      assert.deepEqual(
        names,
        ['in_a', 'in_b'].map(id => `attachment; filename="2026-7 ${id}.pdf"`),
      )
    })

    test('has a safe file name for any invoice number', async t => {
      const numbers = [
        'a\r\nSet-Cookie: x=1',
        '../../etc/passwd',
        'a"b\\c',
        '\u202Efdp.exe',
        'ａ／ｂ＂',
        '🧾',
        '...',
        ' ',
        'x'.repeat(300),
        'é'.repeat(150),
        '🧾'.repeat(60),
        `${'x'.repeat(195)}é`,
        `${'x'.repeat(194)}e\u0301\u0327`,
        `${'x'.repeat(195)}--${'x'.repeat(9)}`,
        'क्षि'.repeat(30),
        "it's (1)*",
        '%2e%2e',
        'ﬁn\u0000al',
      ]
      const service = await startService(t, engine, {
        records: numbers.map((number, place) =>
          makeRecord({ id: `in_${place}`, number: number.replaceAll('\0', '') }),
        ),
        ...working,
      })
      for (const [place, number] of numbers.entries()) {
        const { status, headers } = await service.get(path(`in_${place}`, 'payments'))
        const header = String(headers['content-disposition'])
        assert.equal(status, 200)
        assert.equal(headers['set-cookie'], undefined)
        const [, plain, extended] =
          /^attachment; filename="([\x20-\x7e]+\.pdf)"(?:; filename\*=UTF-8''([\w.%!#$&+^`|~-]+))?$/.exec(
            header,
          ) ?? []
        assert.ok(plain !== undefined, header)
        for (const name of [plain, extended === undefined ? plain : decodeURIComponent(extended)]) {
          assert.doesNotMatch(name, /[/\\"\p{Cc}\p{Cf}]|^\./u, header)
          assert.ok(Buffer.byteLength(name) <= 200, `${Buffer.byteLength(name)} bytes`)
          assert.match(name, /[^.\s-] in_\d+\.pdf$/)
        }
        // The longest beginning of the number that fits, and no half character at its end.
        if (number === 'é'.repeat(150))
          assert.equal(decodeURIComponent(extended ?? ''), `${'é'.repeat(95)} in_${place}.pdf`)
        if (number === '🧾'.repeat(60))
          assert.equal(decodeURIComponent(extended ?? ''), `${'🧾'.repeat(47)} in_${place}.pdf`)
      }
    })
  })
}
