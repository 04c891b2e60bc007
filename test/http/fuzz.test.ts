/** Whatever comes in is data: a clear 4xx or a filtered answer, never a 5xx, never an unfiltered one. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { listParameters } from '../../src/domain/list-query.ts'
import { campaign } from '../support/checks/campaign.ts'
import { expectedMatches } from '../support/checks/model.ts'
import { anyCharacter } from '../support/clients/any-character.ts'
import { engines } from '../support/databases/engines.ts'
import { makeInvoice, makeRecord } from '../support/worlds/records.ts'
import { shareService, startService } from '../support/worlds/service.ts'

const names = listParameters.filter(name => name !== 'expand')
const nasty = fc.constantFrom(
  '%',
  '_',
  '\0',
  "'",
  '"',
  '\\',
  '--',
  ';',
  ' ',
  '\n',
  '\u202e',
  '\ud83e\uddfe',
  '٣',
  'null',
  'NaN',
  '1e9',
  '-0',
  '../../',
  '$where',
  '{}',
  '[]',
  'true',
  '%00',
  "' OR '1'='1",
  '\uffff',
)
const text = fc
  .array(fc.oneof(nasty, fc.string({ unit: anyCharacter, maxLength: 5 })), { maxLength: 8 })
  .map(parts => parts.join(''))
const encoded = fc.oneof(
  text.map(encodeURIComponent),
  fc.stringMatching(/^[!-~]{0,20}$/).filter(raw => !raw.includes('#')),
)
const query = fc
  .array(fc.tuple(fc.oneof(fc.constantFrom(...names), encoded), encoded), { maxLength: 5 })
  .map(pairs => `?${pairs.map(pair => pair.join('=')).join('&')}`)
const segment = fc.oneof(
  fc.constantFrom('cus_ana', 'in_1', '../..', '.', '', 'invoices', 'invoice'),
  encoded.map(raw => raw.replaceAll('/', '%2f').replaceAll('?', '%3f')),
)

/** Numbers of query strings and of texts to search for. */
const texts = campaign(250, 20_000)

for (const engine of engines) {
  describe(`random requests on ${engine.name}`, () => {
    const service = shareService(engine, { records: [makeRecord({ id: 'in_1' })] })

    test('with any query string get 200 or 400 in JSON', async () => {
      const statuses = new Map<number, number>()
      await fc.assert(
        fc.asyncProperty(query, async asked => {
          const { status, json } = await service().list(asked)
          assert.ok(status === 200 || status === 400, `${status} for ${JSON.stringify(asked)}`)
          assert.ok(json !== undefined)
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
        }),
        { numRuns: texts, seed: 2026 },
      )
      assert.ok(
        Number(statuses.get(200)) > texts / 30 && Number(statuses.get(400)) > texts / 30,
        JSON.stringify([...statuses]),
      )
    })

    test('with any text as q find exactly the matching invoices, and get 400 for a NUL', async t => {
      const found = makeInvoice({ id: 'in_1', display_name: "O'Neill & Søn 100% _" })
      const service = await startService(t, engine, { records: [{ invoice: found, lines: null }] })
      await fc.assert(
        fc.asyncProperty(text, async written => {
          const q = written.toWellFormed()
          const { status, json } = await service.list(`?q=${encodeURIComponent(q)}`)
          assert.equal(status, q.includes('\0') ? 400 : 200, JSON.stringify(q))
          if (status === 200)
            assert.equal(json.total, expectedMatches([found], 'cus_ana', { q }).length, JSON.stringify(q))
        }),
        { numRuns: texts, seed: 2026 },
      )
    })

    test('with any path get 200, 400 or 404 in JSON', async () => {
      const path = fc.array(segment, { maxLength: 4 }).map(segments => `/api/v1/client/${segments.join('/')}`)
      await fc.assert(
        fc.asyncProperty(path, async asked => {
          const { status, json } = await service().get(asked)
          assert.ok([200, 400, 404].includes(status), `${status} for ${JSON.stringify(asked)}`)
          assert.ok(json !== undefined)
        }),
        { numRuns: campaign(200, 10_000), seed: 2026 },
      )
    })

    test('with any bytes get an answer in JSON or a closed connection, and the service continues', async () => {
      const line = fc.oneof(
        fc.constantFrom(
          'GET /live HTTP/1.1',
          'Host: x',
          'Content-Length: 5',
          'Transfer-Encoding: chunked',
          'Authorization: Bearer x',
          '',
        ),
        fc.string({ unit: 'binary-ascii', maxLength: 30 }),
      )
      await fc.assert(
        fc.asyncProperty(fc.array(line, { maxLength: 6 }), async lines => {
          const raw = await service().send(`${lines.join('\r\n')}\r\n\r\n!\0\r\n\r\n`, 'hang up')
          assert.doesNotMatch(raw, /^HTTP\/1\.1 5/)
          if (raw !== '') assert.match(raw, /^HTTP\/1\.1 \d{3} [\s\S]*content-type: application\/json/)
        }),
        { numRuns: campaign(100, 5_000), seed: 2026 },
      )
      assert.equal((await service().get('/ready')).status, 200)
    })
  })
}
