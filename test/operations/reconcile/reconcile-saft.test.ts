/** `fatura reconcile --saft`: exactly the differences between a SAF-T file and the store, on every engine; and files that are none. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, test } from 'node:test'
import { deflateRawSync } from 'node:zlib'
import { type SaftRow, writeSaft } from '../../../sandbox/saft-file.ts'
import { type Document, noClaim } from '../../../src/domain/document.ts'
import type { Invoice } from '../../../src/domain/invoice.ts'
import { defaultRules } from '../../../src/domain/link/link.ts'
import { FileError } from '../../../src/operations/reconcile/decode-xml.ts'
import { readSaft, type SaftPart } from '../../../src/operations/reconcile/read-saft.ts'
import { observationStamp, type WriteStore } from '../../../src/store/store.ts'
import { relinkInvoices } from '../../../src/sync/link-invoices.ts'
import { assertFits, createCli, unwrapped } from '../../support/clients/cli.ts'
import { engines } from '../../support/databases/engines.ts'
import { noGuard } from '../../support/worlds/no-guard.ts'
import { makeInvoice } from '../../support/worlds/records.ts'
import { openStores } from '../../support/worlds/sync.ts'

interface Planted {
  /** The number in the series A, and the document's id. */
  n: number
  invoice?: Partial<Invoice>
  /** Null: none is stored. */
  document?: Partial<Document> | null
  /** Of the document's client. */
  taxId?: string
  /** Null: not in the file. */
  filed?: Partial<SaftRow> | null
}

const month = '2026-10'
const ownTaxId = '123456789'
const now = Date.now()

const charged = { before_taxes: '100', taxes_total: '23' }
const euros = { net: 92, gross: 113.16 }
const inDollars = (total = '123.00') => ({
  invoice: { currency: 'usd' },
  document: {
    ...{ total: '113.16', before_taxes: '92', taxes_total: '21.16' },
    multicurrency: { rate: '1.087', currency: 'usd', total },
  },
})

/** Every kind, and beside each what is nearly one. The invoice of 1 is in_01, its document 1, its number FT A/1. */
const world: readonly Planted[] = [
  { n: 1 },
  { n: 2, filed: null },
  { n: 3, document: null },
  { n: 4, filed: { status: 'A' } },
  { n: 5, document: { status: 'canceled' } },
  { n: 6, document: { status: 'canceled', total: '1' }, filed: { status: 'A' }, invoice: { status: 'void' } },
  { n: 7, filed: { gross: 123.02 } },
  { n: 8, document: { total: '123.009' } },
  { n: 9, document: { before_taxes: '100.02' } },
  { n: 10, invoice: { total_cents: 12_302 } },
  { n: 11, filed: { date: '2026-10-11' } },
  // In the store it is November's.
  { n: 12, document: { date: '2026-11-02' } },
  { n: 13, filed: { atcud: 'JOTHER00-13' } },
  // Known by its ATCUD alone, and by its number alone.
  { n: 14, filed: { number: 'FT A/1014' } },
  { n: 15, document: { atcud: null } },
  { n: 16, filed: { customer: 'anonymous' } },
  { n: 17, taxId: '987654321' },
  { n: 18, filed: { customer: 'anonymous' }, invoice: { customer_tax_id: null } },
  { n: 19, invoice: { status: 'void' } },
  // A second copy of the row.
  { n: 20 },
  // Another type with the same series and number.
  { n: 21, document: { type: 'InvoiceReceipt' }, filed: { number: 'FR A/21' } },
  // An account in dollars.
  {
    n: 22,
    document: { currency: 'US Dollar' },
    invoice: { currency: 'usd' },
    filed: { foreign: { code: 'usd', amount: 123 } },
  },
  // Issued on the first day in Lisbon, which is September's last by UTC; its document is September's.
  {
    n: 23,
    invoice: { issued_at: '2026-09-30T23:30:00.000Z' },
    document: { date: '2026-09-30' },
    filed: null,
  },
  {
    n: 24,
    document: { status: 'draft', series_number: null, atcud: null },
    invoice: { status: 'open' },
    filed: null,
  },
  {
    n: 25,
    document: { reference: 'Order 25' },
    invoice: { id: 'in_other', issued_at: '2026-09-01T00:00:00.000Z' },
  },
  { n: 26, document: { reference: 'in_unknown' }, invoice: { id: 'in_other26', status: 'open' } },
  { n: 27 },
  // Documents are in euros; what the invoice's currency is, both say beside.
  { n: 28, ...inDollars(), filed: { ...euros, foreign: { code: 'usd', amount: 123, rate: 1.087 } } },
  { n: 29, ...inDollars(), filed: { ...euros, foreign: { code: 'usd', amount: 124, rate: 1.087 } } },
  { n: 30, ...inDollars('124.00'), filed: { ...euros, foreign: { code: 'usd', amount: 123, rate: 1.087 } } },
  { n: 31, ...inDollars(), filed: { ...euros, foreign: { code: 'gbp', amount: 123, rate: 1.087 } } },
  { n: 32, ...inDollars(), filed: euros },
  // Tax that the client withholds is a part of neither the file's total nor the invoice's.
  { n: 33, document: { ...charged, total: '98', retention: '25' }, filed: { withheld: 25 } },
  {
    n: 34,
    document: { ...charged, taxes_total: '24', total: '99', retention: '25' },
    filed: { withheld: 25 },
  },
  // An invoice by its type, and an invoice-receipt by its number.
  { n: 35, document: { series_number: 'FR B/35', atcud: null }, filed: { number: 'FR B/35' } },
  // A second copy: the file tells what its original is.
  { n: 36, document: { status: 'second_copy' } },
  { n: 37, document: { status: 'second_copy' }, filed: { status: 'A' } },
  // One of MOSS may be in the file or not.
  { n: 38, document: { type: 'VatMossInvoice' } },
  { n: 1015, document: { type: 'VatMossInvoice' }, filed: null },
  // Nothing is certified of what asks for nothing.
  { n: 39, document: null, filed: null, invoice: { total_cents: 0 } },
  { n: 40, document: null, filed: null, invoice: { total_cents: -500 } },
]

const expected = [
  'FT A/2 not_in_saft in_02: document 2 of 2026-10-10 is settled, and not in the file',
  'FT A/3 not_in_store null: FT A/3 (ATCUD JFX8PR2J-3) of 2026-10-10 is in the file, and not in the store',
  'null paid_not_in_saft in_03: paid, and there is no document',
  'FT A/4 canceled_in_one in_04: canceled in the file, settled in the store',
  'FT A/5 canceled_in_one in_05: in force in the file, canceled in the store',
  'FT A/7 total_differs in_07: 123.02 EUR in the file, 123.0 Euro on the document, 123.00 eur at Stripe',
  'FT A/9 tax_differs in_09: 100.00 before taxes in the file, 100.02 on the document',
  'FT A/10 total_differs in_10: 123.00 EUR in the file, 123.0 Euro on the document, 123.02 eur at Stripe',
  'FT A/11 date_differs in_11: 2026-10-11 in the file, 2026-10-10 on the document',
  'FT A/12 date_differs in_12: 2026-10-10 in the file, 2026-11-02 on the document',
  'FT A/13 number_differs in_13: FT A/13 (ATCUD JOTHER00-13) in the file, FT A/13 (ATCUD JFX8PR2J-13) on the document',
  'FT A/1014 number_differs in_14: FT A/1014 (ATCUD JFX8PR2J-14) in the file, FT A/14 (ATCUD JFX8PR2J-14) on the document',
  'FT A/16 tax_id_one_side in_16: 999999990 in the file, PT123456789 at Stripe',
  "FT A/17 tax_id_differs in_17: 123456789 in the file, 987654321 of the document's client, PT123456789 at Stripe",
  'FT A/19 document_on_void in_19: void, but in force in the file',
  'FT A/20 number_twice null: 2 times in the file',
  'null paid_not_in_saft in_23: paid, and document 23 is not of these days',
  'FT A/2 numbers_missing null: missing in its series',
  'FT A/14 numbers_missing null: missing in its series',
  'FT A/21 numbers_missing null: missing in its series',
  'FT A/23 numbers_missing null: missing in its series, with all up to FT A/24',
  'FT A/29 total_differs in_29: 124.00 USD (113.16 EUR) in the file, 123.00 usd (113.16 Euro) on the document, 123.00 usd at Stripe',
  'FT A/30 total_differs in_30: 123.00 USD (113.16 EUR) in the file, 124.00 usd (113.16 Euro) on the document, 123.00 usd at Stripe',
  'FT A/31 total_differs in_31: 123.00 GBP (113.16 EUR) in the file, 123.00 usd (113.16 Euro) on the document, 123.00 usd at Stripe',
  'FT A/32 currency_unknown in_32: 113.16 EUR in the file, which has no total in usd',
  'FT A/34 total_differs in_34: 123.00 EUR in the file, 124 Euro (99 after retention) on the document, 123.00 eur at Stripe',
  'FT A/35 numbers_missing null: missing in its series',
  'FT A/39 numbers_missing null: missing in its series, with all up to FT A/1013',
  'null saft_totals_differ null: SalesInvoices: TotalCredit is 3261.00, and the lines’ sum 3260.00',
]
const unlinked = ['FT A/25 document_without_invoice null', 'FT A/26 document_of_unknown_invoice in_unknown']

function rowOf({ n, filed = {} }: Planted): SaftRow[] {
  if (filed === null) return []
  const row: SaftRow = {
    number: `FT A/${n}`,
    atcud: `JFX8PR2J-${n}`,
    status: 'N',
    date: `${month}-10`,
    customer: 'own',
    net: 100,
    gross: 123,
    ...filed,
  }
  return n === 20 ? [row, row] : [row]
}

const customers = [
  { id: 'own', taxId: ownTaxId, name: 'Ação, Lda' },
  { id: 'anonymous', taxId: '999999990', name: 'Consumidor final' },
]

function file(planted: readonly Planted[], surplus = 0): Buffer {
  return writeSaft({ month, customers, sales: planted.flatMap(rowOf), surplus })
}

async function plant(store: WriteStore, planted: readonly Planted[]): Promise<void> {
  let stamp = observationStamp(now - 3_600_000)
  const invoices = planted.map(({ n, invoice }) =>
    makeInvoice({ id: idOf(n), issued_at: `${month}-10T10:00:00.000Z`, ...invoice }),
  )
  await store.transaction(async tx => {
    await tx.saveInvoices(
      invoices.map(invoice => ({ invoice, lines: null, claim: noClaim })),
      stamp++,
    )
    for (const { n, document = {}, taxId } of planted) {
      if (document === null) continue
      const whole: Document = {
        id: n,
        type: 'Invoice',
        status: 'settled',
        reference: idOf(n),
        number: `${n}/A`,
        date: `${month}-10`,
        total: '123.0',
        currency: 'Euro',
        client_id: n,
        series_number: `A/${n}`,
        atcud: `JFX8PR2J-${n}`,
        before_taxes: '100.0',
        ...document,
      }
      await tx.saveDocuments([whole], stamp++)
      if (taxId !== undefined) await tx.saveClient(n, taxId, stamp++)
    }
    const ids = invoices.map(({ id }) => id)
    await relinkInvoices(tx, { documents: [], invoices: ids }, 'test', {
      rules: defaultRules,
      guard: noGuard,
      now: Date.now(),
    })
    for (const name of ['ix:all', 'ix:open'])
      await tx.saveStream({ name, cursor: null, succeeded_at: now, failed_at: null, error: null })
  })
}

function idOf(n: number): string {
  return `in_${String(n).padStart(2, '0')}`
}

for (const engine of engines)
  describe(`fatura reconcile --saft on ${engine.name}`, () => {
    it('finds exactly the planted differences of every kind, and none in similar correct pairs', async t => {
      const { store, url } = await openStores(t, engine)
      const cli = await createCli(t)
      await plant(store, world)
      await writeFile(join(cli.folder, 'saft.xml'), file(world, 1))
      const run = (...args: string[]) =>
        cli.run(['reconcile', '--saft', 'saft.xml', ...args], { env: { DATABASE_URL: url } })
      const find = async (...args: string[]) => {
        const { code, stdout, stderr } = await run('--json', ...args)
        assert.equal(code, 1, stderr)
        const lines = stdout.trim().split('\n')
        return lines.map(line => JSON.parse(line))
      }
      const found = await find()
      assert.deepEqual(
        found
          .map(
            ({ kind, document_number, invoice_id, detail }) =>
              `${document_number} ${kind} ${invoice_id}: ${detail}`,
          )
          .sort(),
        expected.toSorted(),
      )
      const all = await find('--unlinked', '--month', month, '--company', '509442013')
      assert.deepEqual(
        all
          .map(({ kind, document_number, invoice_id }) => `${document_number} ${kind} ${invoice_id}`)
          .filter(text => / document_(of|without)_/.test(text)),
        unlinked,
      )
      const { code, stdout, stderr } = await run()
      assert.equal(code, 1)
      assertFits(stdout + stderr)
      assert.match(unwrapped(stdout), /^total_differs +cus_ana +in_07 /m)
      assert.match(
        stderr.replace(/(?<!\.)\n/g, ' '),
        /^29 differences in 36 documents of the file checked: 1 document_on_void, 6 total_differs, 1 currency_unknown, 1 tax_differs, 1 tax_id_differs, 1 tax_id_one_side, .* 1 saft_totals_differ\.\nAlso, 2 documents in force are tied/,
      )
    })

    it('counts one cent as rounding, lists it with --all, and exits with 0', async t => {
      const { store, url } = await openStores(t, engine)
      const cli = await createCli(t)
      const near: Planted[] = [
        { n: 1, filed: { gross: 123.01 } },
        { n: 2, document: { before_taxes: '99.99' } },
      ]
      await plant(store, near)
      await writeFile(join(cli.folder, 'saft.xml'), file(near))
      const args = ['reconcile', '--saft', 'saft.xml', '--json']
      const run = async (...more: string[]) => {
        const { code, stdout, stderr } = await cli.run([...args, ...more], { env: { DATABASE_URL: url } })
        const rows = stdout.split('\n').filter(Boolean)
        return [code, rows.map(row => JSON.parse(row).kind), /Also, 2 are rounding/.test(stderr)]
      }
      assert.deepEqual(await run(), [0, [], true])
      assert.deepEqual(await run('--all'), [0, ['rounding', 'rounding'], true])
      assert.deepEqual(await run('--tolerance', '0'), [1, ['total_differs', 'tax_differs'], false])
    })

    it('finds no difference when a credit note cancels the document of a void invoice in full', async t => {
      const { store, url } = await openStores(t, engine)
      const cli = await createCli(t)
      const credited: Planted[] = [{ n: 1, invoice: { status: 'void' }, document: { taxes_total: '23.0' } }]
      await plant(store, credited)
      await store.transaction(tx =>
        tx.saveRelations(
          1,
          {
            has_qr: false,
            documents: [
              { id: 9, type: 'CreditNote', status: 'final', date: null, total: '123.0', currency: 'Euro' },
            ],
          },
          observationStamp(now),
        ),
      )
      await writeFile(join(cli.folder, 'saft.xml'), file(credited))
      const { code, stdout } = await cli.run(['reconcile', '--saft', 'saft.xml', '--json'], {
        env: { DATABASE_URL: url },
      })
      assert.deepEqual([code, stdout], [0, ''])
    })

    it('finds no difference and exits with 0 when both sides agree', async t => {
      const { store, url } = await openStores(t, engine)
      const cli = await createCli(t)
      const right = [1, 2, 3].map(n => ({ n }))
      await plant(store, right)
      await writeFile(join(cli.folder, 'saft.xml'), file(right))
      const { code, stdout, stderr } = await cli.run(['reconcile', '--saft', 'saft.xml'], {
        env: { DATABASE_URL: url },
      })
      assert.deepEqual(
        [code, stdout, stderr],
        [0, '', 'No differences in 3 documents of the file checked.\n'],
      )
    })
  })

const good = file([{ n: 1 }, { n: 2 }])
const text = good.toString('latin1')
const change = (from: string | RegExp, to: string) => Buffer.from(text.replace(from, to), 'latin1')

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

function read(bytes: Buffer, size = 1000): Promise<SaftPart[]> {
  return Array.fromAsync(readSaft(inPieces(bytes, size)))
}

/** The head of an entry, its name and its data. */
function zipEntry(name: string, data: Buffer, { method = 8, flags = 8, size = 0 } = {}): Buffer {
  const head = Buffer.alloc(30)
  head.write('PK\x03\x04', 'latin1')
  head.writeUInt16LE(flags, 6)
  head.writeUInt16LE(method, 8)
  head.writeUInt32LE(size, 18)
  head.writeUInt16LE(name.length, 26)
  return Buffer.concat([head, Buffer.from(name), data])
}

/** As a program writes one: with its length after the data, and a directory at the end. */
function zip(bytes: Buffer, ...before: Buffer[]): Buffer {
  return Buffer.concat([...before, zipEntry('saft.xml', deflateRawSync(bytes)), Buffer.from('PK\x07\x08 …')])
}

const none = Buffer.alloc(0)
/** A folder as most programs write it, as one with its length after it, and as one with an empty deflated part. */
const folders = [
  zipEntry('2026/', none, { method: 0, flags: 0 }),
  zipEntry('2026/10/', Buffer.from(`PK\x07\x08${'\0'.repeat(12)}`, 'latin1'), { method: 0 }),
  zipEntry('2026/10/saft/', Buffer.from([3, 0]), { flags: 0, size: 2 }),
]

describe('a SAF-T file', () => {
  const namesOf = async (bytes: Buffer, size?: number) => {
    const [first] = await read(bytes, size)
    assert.equal(first?.kind, 'header')
    return first.header.company
  }

  test('is read in chunks of any size, in its declared encoding, and out of a ZIP archive', async () => {
    const name = 'Ensaio & Ilustração, Lda'
    const whole = await read(good)
    assert.equal(await namesOf(good), name)
    assert.deepEqual(await read(good, 1), whole)
    assert.deepEqual(await read(good, good.length), whole)
    assert.deepEqual(await read(zip(good), 7), whole)
    for (const before of [...folders.map(folder => [folder]), folders])
      for (const size of [7, 10_000]) assert.deepEqual(await read(zip(good, ...before), size), whole)
    const utf8 = text.replace('Windows-1252', 'UTF-8')
    assert.equal(await namesOf(Buffer.from(utf8), 1), name)
    assert.equal(await namesOf(Buffer.from(utf8.replace(/ encoding="UTF-8"/, ''))), name)
    assert.equal(await namesOf(Buffer.from(`\ufeff${utf8}`)), name)
    assert.equal(await namesOf(Buffer.from(`\ufeff${utf8.replace('UTF-8', 'UTF-16')}`, 'utf16le')), name)
    assert.equal(await namesOf(change('Windows-1252', 'ISO-8859-1')), name)
    // A sign that Latin-1 does not have.
    assert.equal(await namesOf(change('Ilustra\xe7\xe3o', '\x80')), 'Ensaio & €, Lda')
    const prefixed = text.replace(/<(\/?)(?=[A-Z])/g, '<$1p:').replace('xmlns=', 'xmlns:p=')
    assert.deepEqual(await read(Buffer.from(prefixed, 'latin1')), whole)
  })

  test('is read document by document, while the rest is still unread', async () => {
    const many = file(Array.from({ length: 1_000 }, (_, index) => ({ n: index + 100 })))
    let [pulled, seen, most] = [0, 0, 0]
    async function* pieces() {
      for await (const piece of inPieces(many, 10_000)) {
        pulled += piece.length
        yield piece
      }
    }
    for await (const { kind } of readSaft(pieces())) {
      if (kind === 'document') seen++
      // Bytes of the file that are neither seen as a document nor still to come.
      most = Math.max(most, pulled - (seen / 1_000) * many.length)
    }
    assert.equal(seen, 1_000)
    assert.ok(most < 30_000, `${most} of ${many.length} bytes were held`)
  })

  const bomb = '<!DOCTYPE AuditFile [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
  const refused: [name: string, bytes: Buffer, message: RegExp][] = [
    ['no bytes', Buffer.alloc(0), /^is not a SAF-T \(PT\) file: it is empty$/],
    ['a PDF', Buffer.from('%PDF-1.7 …'), /^is not a SAF-T \(PT\) file: it is not XML$/],
    ['an HTML page', Buffer.from('<html><body/></html>'), /^is not a SAF-T \(PT\) file: its root is html$/],
    [
      'an incomplete file',
      good.subarray(0, -200),
      /^is cut off: it ends within (Invoice|DocumentTotals|\w+)$/,
    ],
    ['an incomplete archive', zip(good).subarray(0, 300), /^is cut off: the ZIP archive is not whole$/],
    [
      'only the beginning of an archive',
      zip(good).subarray(0, 20),
      /^is cut off: the ZIP archive is not whole$/,
    ],
    [
      'an archive of folders',
      Buffer.concat([...folders, Buffer.from(`PK\x01\x02${'.'.repeat(60)}`, 'latin1')]),
      /^is a ZIP archive without a file$/,
    ],
    [
      'an encrypted archive',
      zipEntry('saft.xml', good, { flags: 1 }),
      /^is a ZIP archive that cannot be read/,
    ],
    [
      "Angola's form",
      change('Tax:PT_1.04_01', 'Tax:AO_1.01_01'),
      /^is a SAF-T file of another country than Portugal: .*AO_1/,
    ],
    [
      "Norway's form",
      change('OECD:StandardAuditFile-Tax:PT_1.04_01', 'StandardAuditFile-Taxation-Financial:NO'),
      /another country/,
    ],
    ['unclosed elements', change('</Header>', '</Heade>'), /^is not well-formed XML, at line 2$/],
    [
      'two roots',
      Buffer.concat([good, Buffer.from('<AuditFile/>')]),
      /^is not well-formed XML: it has two roots$/,
    ],
    [
      'entities',
      change('<AuditFile', `${bomb}<AuditFile`),
      /^is not a SAF-T \(PT\) file: it has a document type declaration$/,
    ],
    ['unknown entities', change('Desconhecido', '&nbsp;'), /^is not well-formed XML/],
    ['endless nesting', change('<MasterFiles>', '<a>'.repeat(40)), /nested too deep$/],
    [
      'an unknown encoding',
      change('Windows-1252', 'Klingon'),
      /^is in the encoding Klingon, which is not known here$/,
    ],
    [
      'another encoding',
      change('Windows-1252', 'UTF-8'),
      /^holds bytes that are not utf-8, the encoding that it names$/,
    ],
    [
      'a Header without days',
      change(/<StartDate>[^/]*</, '<StartDate>soon<'),
      /its Header has no company or no days$/,
    ],
    ['a missing Header', change(/<Header>.*<\/Header>/, ''), /it does not begin with a Header$/],
    [
      'a document without a number',
      change(/<InvoiceNo>[^<]*<\/InvoiceNo>/, ''),
      /it has a document without InvoiceNo$/,
    ],
    [
      'an amount that is not a number',
      change(/<CreditAmount>100/, '<CreditAmount>€'),
      /its CreditAmount is no amount$/,
    ],
  ]
  for (const [name, bytes, message] of refused)
    test(`is refused with ${name}`, async () => {
      for (const size of [7, 10_000])
        await assert.rejects(read(bytes, size), error => {
          assert.ok(error instanceof FileError, String(error))
          assert.match(error.message, message)
          return true
        })
    })

  test('is refused in one line with exit code 2, also for another month or company', async t => {
    const cli = await createCli(t)
    const { store, url } = await openStores(t, engines[0] ?? assert.fail())
    await plant(store, [{ n: 1 }])
    await writeFile(join(cli.folder, 'good.xml'), good)
    await writeFile(join(cli.folder, 'cut.xml'), good.subarray(0, -200))
    const cases: [args: string[], message: RegExp][] = [
      [['--saft', 'cut.xml'], /^cut\.xml is cut off: it ends within \w+\.$/],
      [
        ['--saft', 'good.xml', '--month', '2026-09'],
        /^good\.xml covers other days: 2026-10-01 to 2026-10-31, not 2026-09\.$/,
      ],
      [
        ['--saft', 'good.xml', '--company', '501234567'],
        /^good\.xml belongs to another company: .* \(509442013\), not 501234567\.$/,
      ],
      [
        ['--saft', 'missing.xml'],
        /^There is no file missing\.xml\. To fetch a month, write it as YYYY-MM\.$/,
      ],
      [['--saft', '.'], /^\. is a folder\. Name a SAF-T file\.$/],
      [['--saft', '2026-13'], /must be a calendar month/],
      [['--saft', '2026-10'], /^To fetch the SAF-T file of a month, set INVOICEXPRESS_API_KEY/],
      [['--saft', 'good.xml', '--customer', 'cus_ana'], /^--saft cannot be used together with --customer/],
      [['--company', '501234567'], /^--company can only be used together with --saft\.$/],
    ]
    for (const [args, message] of cases) {
      const { code, stdout, stderr } = await cli.run(['reconcile', ...args], { env: { DATABASE_URL: url } })
      assert.deepEqual([code, stdout], [2, ''], stderr)
      assert.match(stderr.replace(/^fatura: (.*)\n$/, '$1'), message)
    }
  })
})
