import assert from 'node:assert/strict'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { pino } from 'pino'
import { startApi } from '../../src/cli/start/start-api.ts'
import { type Invoice, invoiceFields, lineFields } from '../../src/domain/invoice.ts'
import { openWriteStore } from '../../src/store/engines.ts'
import { importInvoices, NotNdjson } from '../../src/sync/import/import-invoices.ts'
import {
  assertOneLine,
  type Cli,
  createCli,
  eventually,
  get,
  ndjson,
  type Outcome,
  type Serving,
} from '../support/clients/cli.ts'
import { makeInvoice, makeLine, withDocument } from '../support/worlds/records.ts'

/** Every field that may be left out, and no other. */
const nullable = [
  'number',
  'customer_name',
  'customer_email',
  'company_name',
  'customer_tax_id',
  'tax_percent',
  'ix_created_at',
  'ix_id',
  'ix_status',
]
const nullableInLine = ['description', 'quantity', 'unit_amount_cents']

const maximumLineBytes = 16 * 1024 * 1024

/** The API over what is stored, within this process, and a token for all of it: no test here is about `serve`. */
async function look(t: TestContext, cli: Cli): Promise<[api: Pick<Serving, 'get'>, token: string]> {
  const token = await cli.createToken()
  const { address, stop } = await startApi({
    url: `sqlite:${cli.database}`,
    host: '127.0.0.1',
    port: 0,
    rateLimit: null,
    web: false,
    stripe: null,
    invoiceXpress: null,
    log: pino({ level: 'silent' }),
  })
  t.after(() => stop())
  return [{ get: (path, token) => get(address + path, token) }, token]
}

describe('fatura import', { concurrency: 3 }, () => {
  it('reads a file, or standard input with -, with the same result', async t => {
    const cli = await createCli(t)
    const records = [
      { ...makeInvoice(withDocument), lines: [makeLine(), makeLine()] },
      { ...makeInvoice(), lines: [] },
      makeInvoice({ customer_id: 'cus_rui', display_name: 'Construções Évora – 東京 🧾' }),
    ]
    await writeFile(join(cli.folder, 'invoices.ndjson'), ndjson(...records))
    const fromFile = await cli.run(['import', 'invoices.ndjson'])
    assert.equal(fromFile.code, 0)
    assert.match(fromFile.stdout, /^Imported 3 invoices: 3 new or changed, 0 as before\b.*\n$/)
    assert.equal(fromFile.stderr, '')
    const fromInput = await cli.run(['import', '-'], { input: ndjson(...records) })
    assert.equal(fromInput.code, 0)
    assert.match(fromInput.stdout, /^Imported 3 invoices: 0 new or changed, 3 as before\b.*\n$/)

    const [api, token] = await look(t, cli)
    for (const { lines, ...invoice } of records as (Invoice & { lines?: unknown[] })[]) {
      const list = await api.get(`/api/v1/client/${invoice.customer_id}/invoices?q=${invoice.id}`, token)
      assert.deepEqual(list.json.invoices, [invoice])
      const detail = await api.get(`/api/v1/client/${invoice.customer_id}/invoice/${invoice.id}`, token)
      assert.deepEqual(detail.json.lines, lines ?? [])
      assert.equal(detail.json.lines_source, lines === undefined ? 'none' : 'payments')
    }
  })

  it('refuses every invalid value of every field with the line, field and allowed values', async t => {
    const cli = await createCli(t)
    const fields = new Set(badValues.map(([field]) => field))
    for (const field of invoiceFields) assert.ok(fields.has(field), `${field} is tried`)
    for (const field of lineFields) assert.ok(fields.has(`lines[1].${field}`), `lines[].${field} is tried`)

    // As many in one file as are told of one file.
    for (let start = 0; start < badValues.length; start += 20) {
      const cases = badValues.slice(start, start + 20)
      const outcome = await cli.run(['import', '-'], {
        input: cases.map(([field, json]) => `${lineWith(field, json)}\n`).join(''),
      })
      assertNothingImported(outcome, `${cases.length} of ${cases.length} lines`)
      const told = outcome.stderr.split('\n').slice(0, cases.length)
      for (const [index, [field, json, allowed]] of cases.entries()) {
        const expected = `line ${index + 1}: ${field} must be ${allowed}`
        assert.ok(
          told[index]?.startsWith(expected),
          `for ${json}: "${told[index]}" should be "${expected} …"`,
        )
      }
    }
  })

  it('refuses amounts whose sum is too large for SQLite, and stores nothing of the file', async t => {
    const many = (count: number, first: number, total_cents: number) =>
      ndjson(...Array.from({ length: count }, (_, i) => makeInvoice({ id: `in_${first + i}`, total_cents })))
    const largest = 10 ** 15
    const steps: [name: string, stored: string, refused: string][] = [
      ['a customer who gets counters', '', many(9_500, 0, largest)],
      ['a counter, and what is added to it', many(9_000, 0, largest), many(500, 9_000, largest)],
      ['what one import adds', many(2_001, 0, 1), many(9_500, 2_001, -largest)],
    ]
    for (const [name, stored, refused] of steps) {
      const cli = await createCli(t)
      const before = await cli.run(['import', '-'], { input: stored })
      assert.equal(before.code, 0, name)
      const outcome = await cli.run(['import', '-'], { input: refused })
      assert.equal(outcome.code, 1, name)
      assertOneLine(outcome, /add up to more than SQLite counts/)
      const [api, token] = await look(t, cli)
      const { json } = await api.get('/api/v1/client/cus_ana/invoices', token)
      assert.equal(json.total, stored.split('\n').length - 1, name)
      const writer = await openWriteStore(`sqlite:${cli.database}`)
      assert.equal(await writer.checkCounts(), 0, name)
      await writer.close()
    }
  })

  it('refuses a number that is too large, and does not read it as null', async t => {
    const cli = await createCli(t)
    const outcome = await cli.run(['import', '-'], { input: `${lineWith('tax_percent', '1e400')}\n` })
    assertNothingImported(outcome, '1 of 1 lines')
    assert.match(outcome.stderr, /^line 1: tax_percent must be a number/)
    assert.doesNotMatch(outcome.stderr, /found null/)
  })

  it('refuses a line without a required field, and names the field', async t => {
    const cli = await createCli(t)
    const required = [
      ...invoiceFields.filter(field => !nullable.includes(field)),
      ...lineFields.filter(field => !nullableInLine.includes(field)).map(field => `lines[1].${field}`),
    ]
    const outcome = await cli.run(['import', '-'], {
      input: required.map(field => `${lineWith(field, undefined)}\n`).join(''),
    })
    assertNothingImported(outcome, `${required.length} of ${required.length} lines`)
    const told = outcome.stderr.split('\n')
    for (const [index, field] of required.entries())
      assert.match(
        told[index] ?? '',
        new RegExp(`^line ${index + 1}: ${literal(field)} .*\\(it is missing\\)$`),
      )
  })

  it('accepts a line without nullable fields, which are then null', async t => {
    const cli = await createCli(t)
    const invoice: Record<string, unknown> = { ...makeInvoice({ id: 'in_least', customer_id: 'cus_least' }) }
    for (const field of nullable) delete invoice[field]
    const line: Record<string, unknown> = { ...makeLine() }
    for (const field of nullableInLine) delete line[field]
    await cli.load({ ...invoice, lines: [line] })

    const [api, token] = await look(t, cli)
    const list = await api.get('/api/v1/client/cus_least/invoices', token)
    const nulls = Object.fromEntries(nullable.map(field => [field, null]))
    assert.deepEqual(list.json.invoices, [{ ...invoice, ...nulls }])
    assert.deepEqual(Object.keys(list.json.invoices[0]), invoiceFields)
    const detail = await api.get('/api/v1/client/cus_least/invoice/in_least', token)
    const lineNulls = Object.fromEntries(nullableInLine.map(field => [field, null]))
    assert.deepEqual(detail.json.lines, [{ ...line, ...lineNulls }])
    assert.deepEqual(Object.keys(detail.json.lines[0]), lineFields)
  })

  it('refuses a line that is not an invoice, with the reason', async t => {
    const cli = await createCli(t)
    const refused: [string | Uint8Array, RegExp][] = [
      ['{"id":"in_1",', /^the line is not valid JSON: /],
      ['not json', /^the line is not valid JSON: /],
      ['[]', /^the line must be a JSON object$/],
      ['"in_1"', /^the line must be a JSON object$/],
      ['null', /^the line must be a JSON object$/],
      [Buffer.from(lineWith('display_name', '"Jo\u00e3o"'), 'latin1'), /^the line is not UTF-8$/],
      [lineWith('subtotal', '1'), /^subtotal is not a field of the contract$/],
      [lineWith('__proto__', '{}'), /^__proto__ is not a field of the contract$/],
      [lineWith('lines[1].tax_cents', '1'), /^lines\[1\]\.tax_cents is not a field of the contract$/],
      [`${lineWith('id', '"in_long"')}${' '.repeat(maximumLineBytes)}`, /^the line is longer than 16777216 /],
      [lineWith('tax_percent', '['.repeat(100_000) + ']'.repeat(100_000)), /^tax_percent must be a number/],
    ]
    const input = Buffer.concat(refused.flatMap(([line]) => [Buffer.from(line), Buffer.from('\n')]))
    const outcome = await cli.run(['import', '-'], { input })
    assertNothingImported(outcome, `${refused.length} of ${refused.length} lines`)
    const told = outcome.stderr.split('\n')
    for (const [index, [, reason]] of refused.entries()) {
      const [place, rest = ''] = (told[index] ?? '').split(/: (.*)/)
      assert.equal(place, `line ${index + 1}`)
      assert.match(rest, reason)
    }
  })

  it('explains how to make NDJSON of a JSON array', async t => {
    const cli = await createCli(t)
    const one = JSON.stringify(makeInvoice())
    for (const input of [`[${one}]`, `[\n${one},\n${one}\n]`, ` [\n  {\n  }]`]) {
      const expected =
        "fatura: Nothing was imported: standard input is a JSON array, not NDJSON (one JSON object per line). Convert it with jq: jq -c '.[]' | fatura import -\n"
      assert.equal((await cli.run(['import', '-'], { input })).stderr, expected)
    }
  })

  it('reports once that a file of any other format is not NDJSON', async t => {
    const cli = await createCli(t)
    const pdf = Buffer.concat([
      Buffer.from('%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n', 'latin1'),
      ...Array.from({ length: 2_000 }, (_, n) => Buffer.from(`${n}\n\x1b[31m\0\xff stream\n`, 'latin1')),
      Buffer.from('startxref\n116\n%%EOF\n'),
    ])
    const others: [what: string, input: string | Uint8Array][] = [
      ['a PDF', pdf],
      ['an archive', Buffer.from('PK\x03\x04\x14\0\0\0\x08\0\n\0\0\n\xff\xfe', 'latin1')],
      ['a table', 'id,customer_id\nin_1,cus_1\nin_2,cus_2\n'],
      ['JSON over many lines', JSON.stringify(makeInvoice(), null, 2)],
      ['numbers', '1\n2\n'],
    ]
    for (const [what, input] of others)
      for (const options of what === 'a PDF' ? [[], ['--skip-invalid']] : [[]]) {
        const file = join(cli.folder, 'some.file')
        await writeFile(file, input)
        const outcome = await cli.run(['import', file, ...options])
        assertOneLine(outcome, /^fatura: Nothing was imported: .*some\.file is not NDJSON\. .*\(line 1: /)
        assert.doesNotMatch(outcome.stderr.trimEnd(), /\p{Cc}/u, what)
      }
    const store = await openWriteStore(`sqlite:${cli.database}`)
    for (const [what, input] of others) {
      async function* read() {
        yield Buffer.from(input)
      }
      const onRefusal = () => assert.fail(`${what}: a line is told`)
      await assert.rejects(
        importInvoices(read, store, { skipInvalid: true, onRefusal, onProgress() {} }),
        error => error instanceof NotNdjson && error.line === 1,
      )
    }
    await store.close()
    const late = `${'no json\n'.repeat(25)}${JSON.stringify(makeInvoice())}\n`
    const told = await cli.run(['import', '-'], { input: late })
    assertNothingImported(told, '25 of 26 lines')
    assert.equal(told.stderr.split('\n').filter(line => line.startsWith('line ')).length, 20)
  })

  it('accepts a line of exactly 16 MiB', async t => {
    const cli = await createCli(t)
    const line = lineWith('id', '"in_long"')
    const outcome = await cli.run(['import', '-'], {
      input: `${line}${' '.repeat(maximumLineBytes - Buffer.byteLength(line))}\n`,
    })
    assert.equal(outcome.code, 0, outcome.stderr)
  })

  it('accepts a byte order mark, CRLF, blank lines and a missing last line end', async t => {
    const cli = await createCli(t)
    const [first, second, third] = [makeInvoice(), makeInvoice(), makeInvoice()].map(i => JSON.stringify(i))
    const good = await cli.run(['import', '-'], {
      input: `\ufeff${first}\r\n\r\n  \n${second}\r\n\n${third}`,
    })
    assert.equal(good.code, 0, good.stderr)
    assert.match(good.stdout, /^Imported 3 invoices: 3 new or changed/)
    const bad = await cli.run(['import', '-'], { input: `${first}\r\n\r\n  \n${second}\r\n\n[]` })
    assert.match(bad.stderr, /^line 6: the line must be a JSON object\n/)
  })

  it('imports nothing from an empty file, and succeeds', async t => {
    const cli = await createCli(t)
    const outcome = await cli.run(['import', '-'], { input: '\n\n' })
    assert.equal(outcome.code, 0)
    assert.match(outcome.stdout, /^Imported 0 invoices/)
  })

  it('stores nothing of a file with an invalid line, and all other lines with --skip-invalid', async t => {
    const cli = await createCli(t)
    // More than a batch before the bad line, and more than one behind it.
    const valid = Array.from({ length: 1_300 }, () => makeInvoice())
    const lines = valid.map(invoice => JSON.stringify(invoice))
    lines.splice(700, 0, JSON.stringify({ ...makeInvoice(), status: 'settled' }))
    const file = join(cli.folder, 'invoices.ndjson')
    await writeFile(file, lines.join('\n'))

    const all = await cli.run(['import', file])
    assertNothingImported(all, '1 of 1301 lines')
    assert.match(all.stderr, /^line 701: status must be one of draft, open, paid, void, uncollectible /)
    assert.match(all.stderr, /--skip-invalid/)

    const rest = await cli.run(['import', file, '--skip-invalid'])
    assert.equal(rest.code, 0)
    assert.match(rest.stderr, /^line 701: status must be [^\n]+\n$/)
    // Every one of them is new: the first run left none behind.
    assert.match(
      rest.stdout,
      /^Imported 1300 invoices: 1300 new or changed, 0 as before, 1 invalid lines? skipped\b/,
    )
    const again = await cli.run(['import', '-'], { input: ndjson(...valid) })
    assert.match(again.stdout, /^Imported 1300 invoices: 0 new or changed, 1300 as before\b/)
  })

  it('reports all problems of a line together', async t => {
    const cli = await createCli(t)
    const outcome = await cli.run(['import', '-'], {
      input: ndjson({ ...makeInvoice(), status: 'PAID', currency: 'EUR', total: 1 }),
    })
    assertNothingImported(outcome, '1 of 1 lines')
    for (const field of ['status', 'currency', 'total'])
      assert.match(outcome.stderr, new RegExp(`^line 1: ${field} `, 'm'))
  })

  it('reports the first 20 invalid lines, and the number of the others', async t => {
    const cli = await createCli(t)
    const input = ndjson(...Array.from({ length: 25 }, () => ({ ...makeInvoice(), currency: 'EUR' })))
    const stopped = await cli.run(['import', '-'], { input })
    assertNothingImported(stopped, '25 of 25 lines')
    const skipped = await cli.run(['import', '--skip-invalid', '-'], { input })
    assert.equal(skipped.code, 0)
    assert.match(skipped.stdout, /^Imported 0 invoices\b.*\b25 invalid lines skipped\b/)
    for (const { stderr } of [stopped, skipped]) {
      const told = stderr.split('\n')
      assert.deepEqual(
        told.slice(0, 20).map(line => /^line (\d+): /.exec(line)?.[1]),
        Array.from({ length: 20 }, (_, index) => String(index + 1)),
      )
      assert.match(told[20] ?? '', /^… and 5 more\b/)
      assert.doesNotMatch(stderr, /line 21:/)
    }
  })

  it('reports a line with thousands of problems in fewer than a hundred lines', async t => {
    const cli = await createCli(t)
    const lines = new Array(5_000).fill(0)
    const outcome = await cli.run(['import', '-'], { input: ndjson({ ...makeInvoice(), lines }) })
    assertNothingImported(outcome, '1 of 1 lines')
    assert.match(outcome.stderr, /^line 1: lines\[0\] must be a JSON object\n/)
    const told = outcome.stderr.split('\n').length
    assert.ok(told < 100, `${told} lines on a terminal hide the first ones`)
  })

  it('changes nothing when the same file is imported again, and clients’ caches stay valid', async t => {
    const cli = await createCli(t)
    const records = [{ ...makeInvoice(), lines: [makeLine()] }, makeInvoice()]
    await cli.load(...records)
    const [api, token] = await look(t, cli)
    const list = () => api.get('/api/v1/client/cus_ana/invoices', token)
    const before = await list()
    const again = await cli.run(['import', '-'], { input: ndjson(...records) })
    assert.match(again.stdout, /^Imported 2 invoices: 0 new or changed, 2 as before\b/)
    const after = await list()
    assert.equal(after.text, before.text)
    assert.equal(after.headers.get('etag'), before.headers.get('etag'))
    // A change does show, in the process that was running all along.
    await cli.load(makeInvoice())
    const changed = await list()
    assert.equal(changed.json.total, 3)
    assert.notEqual(changed.headers.get('etag'), before.headers.get('etag'))
  })

  it('stores the later of two lines with one ID, and replaces the whole invoice with its lines', async t => {
    const cli = await createCli(t)
    const id = 'in_twice'
    const first = makeInvoice({ id, ...withDocument, status: 'open', company_name: 'Lima, Lda.' })
    const second = makeInvoice({ id, ...withDocument, status: 'paid', company_name: null })
    await cli.load({ ...first, lines: [makeLine()] }, { ...second, lines: [makeLine(), makeLine()] })
    const [api, token] = await look(t, cli)
    const summary = async () => (await api.get('/api/v1/client/cus_ana/invoices', token)).json.invoices
    const detail = async () => (await api.get(`/api/v1/client/cus_ana/invoice/${id}`, token)).json
    assert.deepEqual(await summary(), [second])
    assert.equal((await detail()).lines.length, 2)

    const third: Record<string, unknown> = { ...makeInvoice({ id, status: 'void' }) }
    for (const field of nullable) delete third[field]
    await cli.load(third)
    const nulls = Object.fromEntries(nullable.map(field => [field, null]))
    assert.deepEqual(await summary(), [{ ...third, ...nulls }])
    const { lines, lines_source } = await detail()
    assert.deepEqual({ lines, lines_source }, { lines: [], lines_source: 'none' })
  })

  it('reports a missing file or a folder in one line', async t => {
    const cli = await createCli(t)
    await mkdir(join(cli.folder, 'invoices'))
    assertOneLine(await cli.run(['import', 'missing.ndjson']), /missing\.ndjson/)
    assertOneLine(await cli.run(['import', 'invoices']), /invoices is a folder/)
  })

  it('reports in one line that standard input is a folder', async t => {
    const cli = await createCli(t)
    const folder = openSync(cli.folder, 'r')
    t.after(() => closeSync(folder))
    assertOneLine(await cli.run(['import', '-'], { input: folder }), /folder|directory/i)
  })

  it('stores nothing when it is killed, and the store can be used at once', async t => {
    // More than SQLite keeps in memory, so that a part of it is on the disk when the kill comes.
    const lines = [makeLine({ description: 'x'.repeat(40_000) })]
    /** True when the kill came before the import was committed. */
    const killHalfWay = async (invoices: number): Promise<boolean> => {
      const cli = await createCli(t)
      await cli.load(makeInvoice({ id: 'in_before' }))
      const program = cli.start(['import', '-'], { input: null })
      for (let written = 0; written < invoices; written++)
        if (!program.child.stdin.write(ndjson({ ...makeInvoice(), lines })))
          await once(program.child.stdin, 'drain')
      program.child.stdin.end()
      await eventually('a part of the import is on the disk', async () => {
        const found = await stat(`${cli.database}-wal`).catch(() => null)
        return program.child.exitCode !== null || (found !== null && found.size > 4_000_000)
      })
      await program.stop('SIGKILL')

      const [api, token] = await look(t, cli)
      const count = async () => (await api.get('/api/v1/client/cus_ana/invoices', token)).json.total
      const total = await count()
      assert.ok([1, 1 + invoices].includes(total), `all or nothing, not ${total}`)
      await cli.load(makeInvoice({ id: 'in_after' }))
      assert.equal(await count(), total + 1)
      return total === 1
    }
    for (let invoices = 2_000; !(await killHalfWay(invoices)); ) invoices *= 2
  })

  it('needs the same memory for a small file and for 15,000 large invoices', {
    skip: process.platform !== 'linux' && 'the peak memory of a process is read from /proc',
  }, async t => {
    const cli = await createCli(t)
    const program = cli.start(['import', '-'], {
      input: null,
      // Garbage is collected early, so that what is measured is what is held.
      env: { NODE_OPTIONS: '--max-old-space-size=64' },
    })
    const { stdin } = program.child
    const lines = JSON.stringify([makeLine({ description: 'x'.repeat(6_000) })])
    const count = 15_000
    let bytes = 0
    for (let batch = 0; batch < count / 500; batch++) {
      const texts = Array.from({ length: 500 }, (_, index) => {
        // The same invoices again and again: the stream is long, the store is not.
        const invoice = JSON.stringify(makeInvoice({ id: `in_${(batch % 4) * 500 + index}`, number: null }))
        return `${invoice.slice(0, -1)},"lines":${lines}}\n`
      })
      const chunk = Buffer.from(texts.join(''))
      bytes += chunk.length
      if (!stdin.write(chunk)) await once(stdin, 'drain')
    }
    // All but what is in the pipe was read; the import still holds its transaction.
    const status = await readFile(`/proc/${program.pid}/status`, 'utf8')
    const peak = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024
    stdin.end()
    const outcome = await program.exited
    assert.equal(outcome.code, 0, outcome.stderr)
    assert.match(outcome.stdout, /^Imported 15000 invoices: 2000 new or changed\b/)
    t.diagnostic(`${Math.round(bytes / 2 ** 20)} MiB in, ${Math.round(peak / 2 ** 20)} MiB at most held`)
    assert.ok(bytes > 90 * 2 ** 20)
    assert.ok(peak < 175 * 2 ** 20, `${Math.round(peak / 2 ** 20)} MiB`)
  })
})

const cents = "a whole number in the currency's smallest unit, from -10^15 to 10^15"
const moment = 'a moment in UTC with milliseconds, like 2026-03-02T09:30:00.000Z'
const name = 'text of at least one character, without NUL'
const text = 'text without NUL'

/** A field, a value in JSON that it must not have, and what the refusal says is allowed. */
const badValues: readonly (readonly [field: string, json: string, allowed: string])[] = [
  ['id', '"inv_1"', 'an ID that begins with in_'],
  ['id', '"in_"', 'an ID that begins with in_'],
  ['id', '"in_a/b"', 'an ID that begins with in_'],
  ['id', '"in_1\\n"', 'an ID that begins with in_'],
  ['id', `"in_${'x'.repeat(253)}"`, 'an ID that begins with in_'],
  ['id', 'null', 'an ID that begins with in_'],
  ['number', '7', `${text}, or null`],
  ['number', '"a\\u0000b"', `${text}, or null`],
  ['display_name', '""', name],
  ['display_name', 'null', name],
  ['display_name', '"\\ud800"', name],
  ['display_name', '"a\\u0000"', name],
  ['customer_name', '[]', `${text}, or null`],
  ['customer_name', '"\\udc00a"', `${text}, or null`],
  ['customer_id', '"ana"', 'an ID that begins with cus_'],
  ['customer_id', 'null', 'an ID that begins with cus_'],
  ['customer_id', `"cus_${'x'.repeat(252)}"`, 'an ID that begins with cus_'],
  ['customer_email', 'false', `${text}, or null`],
  ['company_name', '{}', `${text}, or null`],
  ['customer_tax_id', '123456789', `${text}, or null`],
  ['issued_at', '"2026-03-02"', moment],
  ['issued_at', '"2026-02-30T09:30:00.000Z"', moment],
  ['issued_at', '"2026-03-02T24:00:00.000Z"', moment],
  ['issued_at', '"2026-03-02T09:30:00Z"', moment],
  ['issued_at', '"2026-03-02T09:30:00.000+01:00"', moment],
  ['issued_at', '1772443800', moment],
  ['issued_at', 'null', moment],
  ['total_cents', '1000000000000001', cents],
  ['total_cents', '-1000000000000001', cents],
  ['ix_created_at', '"yesterday"', `${moment}, or null`],
  ['subtotal_cents', '10.5', cents],
  ['discount_cents', '"10"', cents],
  ['tax_cents', 'null', cents],
  ['total_cents', '9007199254740993', cents],
  ['total_cents', 'true', cents],
  ['tax_percent', '"23"', 'a number, or null'],
  ['currency', '"EUR"', 'a lower-case currency code, like eur'],
  ['currency', '"euro"', 'a lower-case currency code, like eur'],
  ['currency', 'null', 'a lower-case currency code, like eur'],
  ['status', '"settled"', 'one of draft, open, paid, void, uncollectible'],
  ['status', 'null', 'one of draft, open, paid, void, uncollectible'],
  ['ix_sync_state', '"done"', 'one of not_synced, creating, synced, failed, ignored'],
  ['ix_sync_state', 'null', 'one of not_synced, creating, synced, failed, ignored'],
  ['ix_id', '1.5', 'a whole number, or null'],
  ['ix_id', '"4711"', 'a whole number, or null'],
  ['ix_status', '7', 'text of at most 255 characters, without NUL, or null'],
  ['ix_status', JSON.stringify('x'.repeat(256)), 'text of at most 255 characters, without NUL, or null'],
  ['lines', '{}', 'an array of line items'],
  ['lines', '"none"', 'an array of line items'],
  ['lines[1]', 'null', 'a JSON object'],
  ['lines[1].id', '""', name],
  ['lines[1].description', '7', `${text}, or null`],
  ['lines[1].description', '"\\ud83e"', `${text}, or null`],
  ['lines[1].quantity', '0.5', 'a whole number, or null'],
  ['lines[1].subtotal_cents', 'null', cents],
  ['lines[1].discount_cents', '0.1', cents],
  ['lines[1].discount_percent', 'null', 'a number'],
  ['lines[1].unit_amount_cents', '"5"', `${cents}, or null`],
  ['lines[1].amount_cents', '1e300', cents],
  ['lines[1].currency', '"EUR"', 'a lower-case currency code, like eur'],
]

/** A valid line of a file, but for one field, which has this JSON instead or is left out. */
function lineWith(field: string, json: string | undefined): string {
  const invoice: Record<string, unknown> = { ...makeInvoice() }
  const second: Record<string, unknown> = { ...makeLine() }
  const [, inLine] = /^lines\[1\]\.(.*)$/.exec(field) ?? []
  const lines: unknown[] = [makeLine(), second]
  if (inLine !== undefined) setJson(second, inLine, json)
  else if (field === 'lines[1]') lines[1] = placeholder
  else setJson(invoice, field, json)
  const text = JSON.stringify({ lines, ...invoice })
  return json === undefined ? text : text.replace(JSON.stringify(placeholder), () => json)
}

const placeholder = 'put the JSON here'

function setJson(target: Record<string, unknown>, field: string, json: string | undefined): void {
  if (json === undefined) delete target[field]
  // As an own member even when it is called __proto__.
  else
    Object.defineProperty(target, field, {
      value: placeholder,
      enumerable: true,
      writable: true,
      configurable: true,
    })
}

function literal(text: string): string {
  return text.replace(/[[\].]/g, '\\$&')
}

function assertNothingImported(outcome: Outcome, howMany: string): void {
  assert.match(outcome.stderr, new RegExp(`^fatura: Nothing was imported: ${howMany} `, 'm'))
  assert.equal(outcome.stdout, '')
  assert.equal(outcome.code, 1)
}
