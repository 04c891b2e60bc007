/** The examples of docs/client.md are the files in examples/, word for word, and print what the page says. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { SourceError } from '../../src/sources/source.ts'
import { createFolder, engines } from '../support/databases/engines.ts'
import { makeLine, makeRecord, withDocument } from '../support/worlds/records.ts'
import { startService } from '../support/worlds/service.ts'

const folder = join(import.meta.dirname, 'examples')
const names = (await readdir(folder)).sort()
const page = await readFile(join(import.meta.dirname, '../../docs/client.md'), 'utf8')

/** Each example as the page has it, with what it prints. */
const shown = [...page.matchAll(/^```ts\n(.*?)^```\n+```text\n(.*?)^```$/gms)].map(
  ([, code = '', output = '']) => ({ code, output }),
)

test('docs/client.md shows exactly the client’s examples', async () => {
  const files = await Promise.all(names.map(name => readFile(join(folder, name), 'utf8')))
  assert.ok(files.length >= 5)
  assert.deepEqual(shown.map(({ code }) => code).sort(), files.sort())
  assert.equal(page.match(/^```ts$/gm)?.length, files.length)
})

const records = [
  makeRecord({
    id: 'in_1',
    number: '2026-00001',
    status: 'open',
    total_cents: 1_230,
    issued_at: '2026-01-05T10:00:00.000Z',
  }),
  makeRecord({
    id: 'in_2',
    number: '2026-00002',
    status: 'open',
    total_cents: 6_150,
    issued_at: '2026-02-05T10:00:00.000Z',
  }),
  makeRecord(
    {
      id: 'in_3',
      number: '2026-00003',
      ...withDocument,
      total_cents: 12_300,
      issued_at: '2026-03-05T10:00:00.000Z',
    },
    [makeLine({ description: 'Plano Essencial', amount_cents: 10_000 })],
  ),
  makeRecord({
    id: 'in_4',
    number: '2026-00004',
    status: 'open',
    total_cents: 2_460,
    issued_at: '2026-04-05T10:00:00.000Z',
  }),
]

/** A PDF that is ready at the second try. */
function slowDocuments() {
  let asked = 0
  return {
    async openPdf() {
      if (++asked === 1) throw new SourceError('not_ready', 'being made', { retryAfter: 1 })
      return { body: Readable.from([Buffer.from('%PDF-1.7\n')]), size: null }
    },
  }
}

test('the client’s examples print the output of docs/client.md', async t => {
  // Of one engine: test/sdk/client.test.ts has the client on each.
  const [engine = assert.fail()] = engines
  const service = await startService(t, engine, { records, documents: slowDocuments() })
  await service.store.transaction(tx => tx.saveSuccess('import', Date.UTC(2026, 4, 1, 12)))
  const env = {
    ...process.env,
    FATURA_URL: service.address,
    FATURA_TOKEN: await service.createToken(),
    TMPDIR: await createFolder(t),
  }
  await Promise.all(
    names.map(async name => {
      const file = join(folder, name)
      const { stdout } = await promisify(execFile)(process.execPath, [file], { env })
      const code = await readFile(file, 'utf8')
      assert.equal(stdout, shown.find(example => example.code === code)?.output, name)
    }),
  )
})
