/** `fatura export`: the same invoices as the API has, in formats that others can read, in files that are whole. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { parquetMetadata, parquetReadObjects } from 'hyparquet'
import pg from 'pg'
import { type FilterOptions, filterFlags, readExportScope } from '../../src/cli/commands/export-filter.ts'
import { CliError } from '../../src/cli/terminal/cli-error.ts'
import {
  type DocumentAbout,
  type Invoice,
  type InvoiceRecord,
  invoiceFields,
  invoiceStatuses,
} from '../../src/domain/invoice.ts'
import type { InvoiceFilters } from '../../src/domain/list-query.ts'
import { completePaymentFacts } from '../../src/domain/payment.ts'
import { exportInvoices } from '../../src/export/export-invoices.ts'
import { exampleDocument } from '../../src/http/openapi/examples.ts'
import { openOperatorStore, openWriteStore } from '../../src/store/engines.ts'
import { campaign } from '../support/checks/campaign.ts'
import { filterNames, filterValues } from '../support/checks/model.ts'
import { assertOneLine, type Cli, createCli, entryPoint, eventually } from '../support/clients/cli.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { makeInvoice, makeLine, makeRecord, withDocument } from '../support/worlds/records.ts'
import { startService } from '../support/worlds/service.ts'

const [sqlite, postgres] = engines as [Engine, Engine]

async function createStore(t: TestContext, engine: Engine, records: readonly InvoiceRecord[]) {
  const url = await engine.createStore(t)
  const store = await openWriteStore(url)
  await store.transaction(tx => tx.saveInvoices(records))
  await store.close()
  const cli = await createCli(t)
  const env = { DATABASE_URL: url }
  return {
    cli,
    url,
    env,
    /** Standard output of an export that succeeds. */
    async run(...args: string[]): Promise<string> {
      const { code, stdout, stderr } = await cli.run(['export', ...args], { env })
      assert.equal(code, 0, stderr)
      return stdout
    },
  }
}

type Row = Record<string, string>

function readCsv(text: string): Row[] {
  return parse(text, { columns: true, record_delimiter: '\r\n' }) as Row[]
}

function readCsvPt(text: string): Row[] {
  return parse(text, { columns: true, bom: true, delimiter: ';', record_delimiter: '\r\n' }) as Row[]
}

async function readParquet(path: string): Promise<Record<string, unknown>[]> {
  const { buffer } = new Uint8Array(await readFile(path))
  return parquetReadObjects({ file: buffer })
}

/** As the API names them. */
type Filter = { customer?: string[] } & Partial<Record<keyof InvoiceFilters, string>>

const names = ['João Conceição', 'Padaria São Bento, Lda.', 'ACME 100%']

for (const engine of engines)
  describe(`fatura export on ${engine.name}`, { concurrency: 2 }, () => {
    it('writes exactly the invoices of the API’s pages, for any filter', async t => {
      const customers = ['cus_ana', 'cus_bob', 'cus_many']
      const records = Array.from({ length: 330 }, (_, i) => {
        const ix_status = ['settled', 'final', null][i % 3] ?? null
        return makeRecord({
          ...(ix_status !== null && withDocument),
          id: `in_${i}`,
          customer_id: customers[i % 11 < 2 ? i % 11 : 2] ?? '',
          display_name: names[i % 4] ?? 'x',
          issued_at: new Date(Date.UTC(2026, 0, 1) + i * 45_000_000).toISOString(),
          status: invoiceStatuses[(i * 3) % 5] ?? 'paid',
          ix_status,
        })
      })
      const service = await startService(t, engine, { records })
      const cli = await createCli(t)
      const values = {
        ...filterValues(records.map(({ invoice }) => invoice)),
        ix_status: ['settled', 'final', ''],
        date_from: ['2026-02-01', '2026-04-15', '2026-06-01'],
        date_to: ['2026-02-28', '2026-05-31'],
        q: ['conceicao', 'sao-bento 2026', '100%', 'in_4'],
      }
      const oneOf = Object.entries(values).map(([name, some]) => [name, fc.constantFrom(...some)])
      const customer = fc.subarray(customers, { minLength: 1 })
      const some = fc.record({ customer, ...Object.fromEntries(oneOf) }, { requiredKeys: [] })
      const readPages = async ({ customer, ...filter }: Filter): Promise<string[]> => {
        const listed: Invoice[] = []
        for (const id of customer ?? customers)
          for (let page = 1, pages = 1; page <= pages; page++) {
            const query = new URLSearchParams({ ...filter, page: String(page), page_size: '50' })
            const { json } = await service.list(`?${query}`, { customer: id })
            listed.push(...json.invoices)
            pages = json.total_pages
          }
        return listed.map(invoice => `${JSON.stringify(invoice)}\n`)
      }

      // The program with each of its flags.
      const one = { status: 'paid', date_from: '2026-02-01', date_to: '2026-05-31' }
      const other = { ix_status: '', q: 'conceicao' }
      const left = filterNames.filter(name => !Object.keys({ ...one, ...other }).includes(name))
      const given: Filter[] = [
        {},
        { customer: ['cus_ana', 'cus_many'], ...one },
        { ...other, ...Object.fromEntries(left.map(name => [name, values[name][0]])) },
      ]
      for (const filter of given) {
        const args = Object.entries(filter).flatMap(([name, values]) =>
          [values].flat().flatMap(value => [filterFlags[name as 'q'].long ?? '', value]),
        )
        const { code, stdout, stderr } = await cli.run(['export', '--format', 'ndjson', ...args], {
          env: { DATABASE_URL: service.url },
        })
        const told = `${JSON.stringify(filter)}: ${stderr}`
        assert.equal(code, 0, told)
        const listed = await readPages(filter)
        assert.ok(listed.length > 0, told)
        // The very texts of the API, in its order.
        assert.equal(stdout, listed.join(''), told)
        assert.match(stderr, new RegExp(`^Exported ${listed.length} invoices? `), told)
      }

      // What the program does then, within this process.
      const seed = Date.now()
      t.diagnostic(`seed ${seed}`)
      const store = await openOperatorStore(service.url)
      for (const filter of fc.sample(some, { numRuns: campaign(7, 100), seed }) as Filter[]) {
        const options = Object.entries(filter).map(([name, value]) => [
          filterFlags[name as 'q'].attributeName(),
          value,
        ])
        const { walk, zone } = readExportScope(Object.fromEntries(options))
        let text = ''
        const { invoices } = await exportInvoices(store, walk, {
          format: 'ndjson',
          perLine: false,
          withDrafts: false,
          ...{ writeMoment: zone.writeMoment, dayOf: zone.dayOf },
          write: async part => {
            text += part
          },
          signal: new AbortController().signal,
          onProgress() {},
        })
        const listed = await readPages(filter)
        assert.equal(text, listed.join(''), JSON.stringify(filter))
        assert.equal(invoices, listed.length)
      }
      await store.close()
    })

    it('writes far more invoices than fit into memory', async t => {
      // Their texts are 46 MB. The program itself takes 11 of the 40 that it may have, and a batch on its way may be there twice.
      const invoices = campaign(1_200, 20_400)
      const description = 'Plano Profissional '.repeat(80)
      const lines = Array.from({ length: 25 }, (_, n) => makeLine({ id: `il_${n}`, description }))
      const { cli, url, env } = await createStore(t, engine, [])
      const store = await openWriteStore(url)
      for (let done = 0; done < invoices; done += 600) {
        const some = Array.from({ length: 600 }, (_, i) => makeRecord({ id: `in_fat${done + i}` }, lines))
        await store.transaction(tx => tx.saveInvoices(some))
      }
      await store.close()
      // What is read does not depend on the format, and what is written not on the engine.
      const formats = engine === sqlite ? ['csv', 'parquet'] : ['ndjson']
      for (const format of formats) {
        const path = join(cli.folder, `out.${format}`)
        const { code, stderr } = await cli.run(['export', '--lines', '--format', format, '--output', path], {
          env: { ...env, NODE_OPTIONS: '--max-old-space-size=40' },
        })
        assert.equal(code, 0, `${format}: ${stderr}`)
        assert.match(stderr, new RegExp(`Exported ${invoices} invoices in ${invoices * 25} rows`))
        if (format !== 'parquet') assert.ok((await stat(path)).size > invoices * 25 * description.length)
      }
    })
  })

/** Whatever is hard to write. */
const odd = [
  makeInvoice({ id: 'in_1', display_name: '=HYPERLINK("http://x";"y")', number: '+351', company_name: '-1' }),
  makeInvoice({ id: 'in_2', display_name: '@SUM(A1)', customer_name: '\ttab', company_name: '\rreturn' }),
  makeInvoice({
    id: 'in_3',
    display_name: 'a "b"; c, d\r\ne\nf',
    customer_email: null,
    customer_tax_id: null,
  }),
  makeInvoice({ id: 'in_4', currency: 'jpy', total_cents: -1234, tax_percent: 6.5, ...withDocument }),
  makeInvoice({ id: 'in_5', currency: 'kwd', total_cents: 1234567, discount_cents: 5, tax_percent: null }),
  makeInvoice({ id: 'in_6', currency: 'tnd', total_cents: -7 }),
  makeInvoice({ id: 'in_7', currency: 'isk', total_cents: 50_000 }),
  makeInvoice({ id: 'in_8', currency: 'ugx', total_cents: 50_000 }),
  makeInvoice({ id: 'in_9', total_cents: Number.MAX_SAFE_INTEGER, subtotal_cents: -Number.MAX_SAFE_INTEGER }),
  makeInvoice({ id: 'in_a', issued_at: '2026-07-31T23:30:00.999Z', display_name: 'João Conceição 🧾' }),
]
const decimals: Record<string, string> = {
  in_4: '-1234',
  in_5: '1234.567',
  in_6: '-0.007',
  in_7: '500.00',
  in_8: '500.00',
  in_9: '90071992547409.91',
}

const lines = [
  makeRecord({ id: 'in_1', currency: 'jpy' }, [
    makeLine({
      id: 'il_1',
      currency: 'jpy',
      description: '=1+1',
      amount_cents: -500,
      unit_amount_cents: null,
    }),
    makeLine({ id: 'il_2', currency: 'jpy', description: null, quantity: null }),
  ]),
  makeRecord({ id: 'in_2', issued_at: '2026-03-01T00:00:00.000Z' }, null),
  makeRecord({ id: 'in_3', issued_at: '2026-02-01T00:00:00.000Z' }, []),
]

describe('the formats of fatura export', { concurrency: 2 }, () => {
  const byId = (rows: readonly Record<string, unknown>[], name = 'id') =>
    new Map(rows.map(row => [row[name], row]))

  it('csv is read back exactly, has no formulas, and has amounts as numbers', async t => {
    const { run } = await createStore(
      t,
      sqlite,
      odd.map(invoice => ({ invoice, lines: null })),
    )
    const text = await run('--format', 'csv')
    const rows = byId(readCsv(text))
    assert.equal(rows.size, odd.length)
    for (const invoice of odd)
      for (const field of invoiceFields) {
        const value = invoice[field]
        const isFormula = typeof value === 'string' && /^[=+\-@\t\r]/.test(value)
        const expected = value === null ? '' : `${isFormula ? "'" : ''}${value}`
        assert.equal(rows.get(invoice.id)?.[field], expected, `${invoice.id} ${field}`)
      }
    for (const [id, total] of Object.entries(decimals)) assert.equal(rows.get(id)?.total, total)
    assert.equal(rows.get('in_9')?.subtotal, '-90071992547409.91')
    assert.doesNotMatch(text, /^\uFEFF|sep=/)
  })

  it('csv-pt opens in Portuguese Excel: byte order mark, semicolons, decimal commas, CRLF, no formulas', async t => {
    const { run } = await createStore(
      t,
      sqlite,
      odd.map(invoice => ({ invoice, lines: null })),
    )
    const text = await run('--format', 'csv-pt', '--timezone', 'Europe/Lisbon')
    assert.match(text, /^\uFEFFFatura;Data;Cliente;NIF;Pagamento;/)
    assert.ok(text.endsWith('\r\n'))
    assert.doesNotMatch(text, /sep=/)
    const rows = new Map(readCsvPt(text).map(row => [row['Fatura (ID)'], row]))
    assert.equal(rows.size, odd.length)
    for (const [id, total] of Object.entries(decimals))
      assert.equal(rows.get(id)?.Total, total.replace('.', ','), id)
    assert.deepEqual(
      ['Data', 'Cliente', 'IVA %', 'Pagamento'].map(name => rows.get('in_a')?.[name]),
      ['2026-08-01', 'João Conceição 🧾', '23', 'Paga'],
    )
    assert.deepEqual(
      ['IVA %', 'Documento certificado (ID)', 'Total'].map(name => rows.get('in_4')?.[name]),
      ['6,5', '4711', decimals.in_4?.replace('.', ',')],
    )
    assert.equal(rows.get('in_3')?.Cliente, 'a "b"; c, d\r\ne\nf')
    const numbers = new Set(['Total', 'Subtotal'])
    for (const row of rows.values())
      for (const [name, cell] of Object.entries(row as Row))
        if (!numbers.has(name)) assert.doesNotMatch(cell, /^[=+\-@\t\r]/, name)
  })

  it('the document’s printed number and ATCUD are columns of csv, and absent from ndjson', async t => {
    const record = { ...makeRecord({ id: 'in_a', ...withDocument }, [makeLine()]), document: exampleDocument }
    const { run } = await createStore(t, sqlite, [record])
    for (const args of [['--format', 'csv'], ['--lines']]) {
      const [row] = readCsv(await run(...args))
      assert.deepEqual([row?.document_number, row?.atcud], ['FR A/123', 'ABCD1234-123'])
    }
    assert.deepEqual(Object.keys(JSON.parse(await run('--format', 'ndjson'))), [...invoiceFields])
  })

  it('rows have the document, taxes by rate, and paid, remaining and credited amounts', async t => {
    const note = { ...exampleDocument.related?.[0], status: 'final' } as DocumentAbout
    const document = { ...exampleDocument, related: [note] }
    const own = makeRecord({ id: 'in_own', status: 'open', ...withDocument })
    const abroad = makeRecord({ id: 'in_usd', status: 'open', currency: 'usd', ...withDocument })
    const taxes = [
      { rate_percent: 23, base_cents: 10_000, tax_cents: 2_300, reason: null },
      { rate_percent: null, base_cents: null, tax_cents: 5, reason: null },
    ]
    const told = { due_date: '2026-04-01', amount_paid_cents: 300, taxes }
    const payment = completePaymentFacts(own.invoice, told)
    const bare = makeRecord({ id: 'in_bare', status: 'paid' })
    const records = [{ ...own, document, payment }, { ...abroad, document, payment }, bare]
    const { run } = await createStore(t, sqlite, records)
    const names = 'document_type document_date due_date tax_base taxes_by_rate paid remaining credited'.split(
      ' ',
    )
    const shown = Object.fromEntries(
      readCsv(await run('--format', 'csv')).map(row => [row.id, names.map(name => row[name])]),
    )
    assert.deepEqual(shown, {
      in_own: [
        'InvoiceReceipt',
        '2026-03-02',
        '2026-04-01',
        '90.00',
        '23% 90.00 20.70',
        '3.00',
        '120.00',
        '11.07',
      ],
      in_usd: [
        'InvoiceReceipt',
        '2026-03-02',
        '2026-04-01',
        '',
        '23% 100.00 23.00; ?% ? 0.05',
        '3.00',
        '120.00',
        '0.00',
      ],
      in_bare: ['', '', '', '', '', '123.00', '0.00', '0.00'],
    })
    const inPt =
      'Documento;Tipo;ATCUD;Data do documento;Vencimento;Base tributável;IVA por taxa;Pago;Por pagar;Creditado'.split(
        ';',
      )
    const rows = readCsvPt(await run('--format', 'csv-pt'))
    const cellsOf = (id: string) => {
      const row = rows.find(each => each['Fatura (ID)'] === id)
      return inPt.map(name => row?.[name])
    }
    const printed = ['FR A/123', 'Fatura-recibo', 'ABCD1234-123', '2026-03-02', '2026-04-01']
    assert.deepEqual(cellsOf('in_own'), [
      ...printed,
      ...['90,00', '23% 90,00 20,70', '3,00', '120,00', '11,07'],
    ])
    assert.deepEqual(cellsOf('in_usd'), [
      ...printed,
      ...['', '23% 100,00 23,00; ?% ? 0,05', '3,00', '120,00', '0,00'],
    ])
  })

  it('csv has drafts only on request, and the other formats always have them', async t => {
    const records = [
      makeRecord({ id: 'in_a', display_name: ',"status":"draft",' }),
      makeRecord({ id: 'in_d', status: 'draft' }),
    ]
    const { run } = await createStore(t, sqlite, records)
    const ids = async (...args: string[]) => readCsv(await run(...args)).map(row => row.id ?? row.invoice_id)
    assert.deepEqual(await ids(), ['in_a'])
    assert.deepEqual(await ids('--lines'), ['in_a'])
    assert.deepEqual(await ids('--drafts'), ['in_d', 'in_a'])
    assert.deepEqual(await ids('--status', 'draft'), ['in_d'])
    assert.equal(readCsvPt(await run('--format', 'csv-pt')).length, 1)
    assert.equal(readCsvPt(await run('--format', 'csv-pt', '--drafts')).length, 2)
    assert.equal((await run('--format', 'ndjson')).trimEnd().split('\n').length, 2)
  })

  it('parquet writes rows with long texts in smaller groups to save memory', async t => {
    const lines = Array.from({ length: 25 }, (_, n) =>
      makeLine({ id: `il_${n}`, description: 'é'.repeat(8_000) }),
    )
    const long = Array.from({ length: 50 }, (_, n) => makeRecord({ id: `in_long${n}` }, lines))
    const { cli, run } = await createStore(t, sqlite, long)
    const path = join(cli.folder, 'long.parquet')
    await run('--lines', '--format', 'parquet', '--output', path)
    const { row_groups } = parquetMetadata(new Uint8Array(await readFile(path)).buffer)
    const rows = row_groups.map(({ num_rows }) => Number(num_rows))
    assert.equal(
      rows.reduce((sum, count) => sum + count),
      50 * 25,
    )
    // 1,250 rows of 8,000 letters, and some more of the invoice.
    assert.ok(rows.length >= 3 && Math.max(...rows) * 8_000 <= 4.5e6, rows.join(' '))
  })

  it('parquet has typed columns for other libraries: int64, exact decimals, timestamps and text', async t => {
    const { run, cli } = await createStore(
      t,
      sqlite,
      odd.map(invoice => ({ invoice, lines: null })),
    )
    const path = join(cli.folder, 'invoices.parquet')
    assert.equal(await run('--format', 'parquet', '--output', path), '')
    const { buffer } = new Uint8Array(await readFile(path))
    const { schema, num_rows } = parquetMetadata(buffer)
    assert.equal(num_rows, BigInt(odd.length))
    const types = new Map(
      schema.map(({ name, type, converted_type, scale }) => [name, { type, converted_type, scale }]),
    )
    assert.deepEqual(types.get('id'), { type: 'BYTE_ARRAY', converted_type: 'UTF8', scale: undefined })
    assert.equal(types.get('total_cents')?.type, 'INT64')
    assert.equal(types.get('ix_id')?.type, 'INT64')
    assert.equal(types.get('tax_percent')?.type, 'DOUBLE')
    assert.equal(types.get('issued_at')?.converted_type, 'TIMESTAMP_MILLIS')
    const { logical_type } = schema.find(({ name }) => name === 'issued_at') ?? {}
    assert.deepEqual(logical_type, { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' })
    assert.deepEqual([types.get('total')?.converted_type, types.get('total')?.scale], ['DECIMAL', 3])
    const rows = byId(await readParquet(path))
    for (const invoice of odd)
      for (const field of invoiceFields) {
        const value = invoice[field]
        const isMoment = value !== null && (field === 'issued_at' || field === 'ix_created_at')
        const isWhole = typeof value === 'number' && field !== 'tax_percent'
        const expected = isMoment ? new Date(value) : isWhole ? BigInt(value) : value
        assert.deepEqual(rows.get(invoice.id)?.[field] ?? null, expected, `${invoice.id} ${field}`)
      }
    for (const [id, total] of Object.entries(decimals)) assert.equal(rows.get(id)?.total, Number(total), id)
  })

  it('ndjson can be read by fatura import', async t => {
    const { run, cli } = await createStore(
      t,
      sqlite,
      // An import takes amounts up to 10^15.
      odd.filter(({ id }) => id !== 'in_9').map(invoice => ({ invoice, lines: null })),
    )
    const text = await run('--format', 'ndjson')
    await cli.load(
      ...text
        .trimEnd()
        .split('\n')
        .map(line => JSON.parse(line)),
    )
    const again = await cli.run(['export', '--format', 'ndjson'])
    assert.equal(again.stdout, text)
  })

  it('--lines writes a row for each line, and one row for an invoice without lines', async t => {
    const { run, cli } = await createStore(t, sqlite, lines)
    const rows = readCsv(await run('--lines'))
    const shown = [
      'invoice_id',
      'lines_source',
      'line',
      'line_id',
      'description',
      'amount_cents',
      'amount',
      'unit_amount',
    ]
    const expected = [
      ['in_1', 'payments', '1', 'il_1', "'=1+1", '-500', '-500', ''],
      ['in_1', 'payments', '2', 'il_2', '', '10000', '10000', '5000'],
      ['in_2', 'none', '', '', '', '', '', ''],
      ['in_3', 'payments', '', '', '', '', '', ''],
    ]
    assert.deepEqual(
      rows.map(row => shown.map(name => row[name])),
      expected,
    )
    assert.ok(!('total_cents' in (rows[0] ?? {})), 'no total that would be added up once a line')
    assert.deepEqual(
      readCsvPt(await run('--lines', '--format', 'csv-pt')).map(row => shown.map(name => row[name])),
      expected,
    )
    const objects = (await run('--lines', '--format', 'ndjson'))
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line))
    assert.deepEqual(
      objects.map(row => [row.invoice_id, row.line, row.description, row.amount_cents]),
      [
        ['in_1', 1, '=1+1', -500],
        ['in_1', 2, null, 10_000],
        ['in_2', null, null, null],
        ['in_3', null, null, null],
      ],
    )
    const path = join(cli.folder, 'lines.parquet')
    await run('--lines', '--format', 'parquet', '--output', path)
    assert.deepEqual(
      (await readParquet(path)).map(row => [row.invoice_id, row.line ?? null, row.amount_cents ?? null]),
      [
        ['in_1', 1n, -500n],
        ['in_1', 2n, 10_000n],
        ['in_2', null, null],
        ['in_3', null, null],
      ],
    )
  })

  it('an export without invoices still has a header or a schema', async t => {
    const { run, cli } = await createStore(t, sqlite, [])
    assert.equal((await run()).split('\r\n').length, 2)
    assert.match(await run('--format', 'csv-pt', '--lines'), /^\uFEFFinvoice_id;[^\n]+\r\n$/)
    assert.equal(await run('--format', 'ndjson'), '')
    const path = join(cli.folder, 'none.parquet')
    await run('--format', 'parquet', '--output', path)
    assert.deepEqual(await readParquet(path), [])
  })
})

/** More than a pipe holds. */
const many = Array.from({ length: 1_500 }, (_, i) => makeRecord({ id: `in_many${i}` }))

const partsIn = async (cli: Cli) => (await readdir(cli.folder)).filter(name => name.endsWith('.part'))

describe('the files of fatura export', { concurrency: 2 }, () => {
  it('are readable only for their owner, replace older files, and keep a symbolic link', async t => {
    const { run, cli } = await createStore(t, sqlite, lines)
    const [path, link] = [join(cli.folder, 'out.csv'), join(cli.folder, 'link.csv')]
    await run('--output', path)
    assert.equal((await stat(path)).mode & 0o777, 0o600)
    const text = await readFile(path, 'utf8')
    await writeFile(path, 'older')
    await symlink(path, link)
    assert.equal(await run('--output', link, '--force'), '', 'nothing on standard output')
    assert.equal(await readFile(path, 'utf8'), text)
    assert.deepEqual(await partsIn(cli), [])
  })

  it('stay unchanged after a signal, even while the database does not answer', async t => {
    const { cli, env, url } = await createStore(t, postgres, many)
    const path = join(cli.folder, 'out.csv')
    await writeFile(path, 'older')
    const other = new pg.Client(url)
    await other.connect()
    await other.query('BEGIN; LOCK TABLE fatura.invoice_lines')
    const program = cli.start(['export', '--lines', '--output', path, '--force'], { env })
    await eventually('the file is begun', async () => (await partsIn(cli)).length === 1)
    const { code } = await program.stop('SIGINT')
    assert.equal(code, 130)
    await other.end()
    assert.equal(program.stderr, 'fatura: Stopped before the end.\n')
    assert.equal(await readFile(path, 'utf8'), 'older')
    assert.deepEqual(await partsIn(cli), [])
  })

  it('an export ends without an error when nobody reads its output any more', async t => {
    const { cli, env } = await createStore(t, sqlite, many)
    const child = spawn(process.execPath, [entryPoint, 'export'], {
      cwd: cli.folder,
      env: { PATH: process.env.PATH ?? '', ...env },
    })
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', text => {
      stderr += text
    })
    await once(child.stdout, 'data')
    child.stdout.destroy()
    const [code, signal] = await once(child, 'close')
    assert.deepEqual([code, signal, stderr], [0, null, ''])
  })

  it('a wrong filter is refused with the allowed values', () => {
    const mistakes: [options: FilterOptions, says: RegExp][] = [
      [
        { status: 'payed' },
        /^--status must be one of draft, open, paid, void, uncollectible, not 'payed'\.$/,
      ],
      [{ from: '2026-02-30' }, /^--from must be a calendar day, written YYYY-MM-DD, not '2026-02-30'\.$/],
      [{ to: 'today' }, /^--to must be a calendar day/],
      [{ month: '2026-13' }, /^--month must be a calendar month/],
      [{ month: '2026-10', to: '2026-10-02' }, /^Use --month, or --from and --to/],
      [{ timezone: 'Lisbon' }, /^--timezone must be the name of a time zone/],
      [{ customer: ['cus_ana', 'in_1'] }, /^--customer must be an ID such as cus_.*, not 'in_1'\.$/],
      [{ q: 'x'.repeat(201) }, /^--q must be text of at most 200 characters, without NUL\.$/],
      [{ q: 'a b c d e f g h i j k' }, /^--q must have at most 10 different words/],
    ]
    for (const [options, says] of mistakes)
      assert.throws(() => readExportScope(options), { constructor: CliError, message: says })
  })

  it('a wrong argument gives one line and writes no file', async t => {
    const { cli, env } = await createStore(t, sqlite, lines)
    const before = await readdir(cli.folder)
    const mistakes: [args: string[], says: RegExp][] = [
      [['--status', 'payed'], /--status must be one of/],
      [['--output', 'nowhere/out.csv'], /nowhere\/out\.csv was not written: there is no such folder/],
      [['--output', '.'], /\. was not written: it is a folder/],
      [['--kind', 'ix'], /--kind can only be used together with --pdfs/],
      [['--pdfs', 'x', '--lines'], /--pdfs cannot be used together with --output or --lines/],
      [['--pdfs', 'x', '--format', 'parquet'], /With --pdfs, --format sets the format of index/],
      [['--pdfs', 'x'], /INVOICEXPRESS_API_KEY is not set, .* --kind payments/],
    ]
    // One after the other, so that one program host is enough.
    for (const [args, says] of mistakes) assertOneLine(await cli.run(['export', ...args], { env }), says)
    assert.deepEqual(await readdir(cli.folder), before)
  })
})
