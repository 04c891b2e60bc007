/** The sandbox's SAF-T files are what the tax authority takes: by its schema's rules, and in what adds up. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createDocuments, type DocumentAccount } from '../../sandbox/invoicexpress/account.ts'
import { createSafts } from '../../sandbox/invoicexpress/saft.ts'
import { createRandom } from '../../sandbox/random.ts'
import { type SaftFile, type SaftRow, writeSaft } from '../../sandbox/saft-file.ts'
import { createAccount } from '../../sandbox/stripe/account.ts'
import { readSaft } from '../../src/operations/reconcile/read-saft.ts'
import { findSaftFaults } from '../support/checks/saft-schema.ts'

function readMonth(documents: DocumentAccount, month: string): Buffer {
  const safts = createSafts(documents, createRandom(1), { delay: 0, lifetimeMs: 60_000 })
  const [year = '', number = ''] = month.split('-')
  const [, secret = ''] = /\/(\w+)\.xml$/.exec(safts.ask(year, number) ?? '') ?? []
  return safts.read(month, secret)
}

/** A year of everything: all states, credit notes of parts, receipts. */
function createYear(): { documents: DocumentAccount; months: string[] } {
  const account = createAccount({ invoices: 400, days: 365 })
  const documents = createDocuments(account)
  const all = [...documents.documents.values()]
  for (const [index, { id, type, status, retention, multicurrency }] of all.entries()) {
    if (!['Invoice', 'InvoiceReceipt', 'SimplifiedInvoice'].includes(type)) continue
    const isOdd = retention !== null || multicurrency !== undefined
    if (!isOdd && index % 9 > 0) continue
    if (['final', 'sent', 'settled'].includes(status)) documents.change('credit', id, '0.37')
    if (type !== 'InvoiceReceipt' && ['final', 'sent'].includes(status)) documents.change('pay', id)
  }
  const days = [...documents.documents.values()].map(({ date }) =>
    date.slice(3).split('/').reverse().join('-'),
  )
  return { documents, months: [...new Set(days)].sort() }
}

describe('a SAF-T file of the sandbox', () => {
  const { documents, months } = createYear()
  const files = months.map(month => readMonth(documents, month))
  const text = files.map(file => file.toString('latin1')).join('')

  test('follows the official schema for every month', () => {
    for (const [index, file] of files.entries())
      assert.deepEqual(findSaftFaults(file).slice(0, 5), [], months[index] ?? '')
  })

  test('has other currencies, retained tax, credit notes, receipts, canceled documents and each kind of rate', () => {
    for (const there of [
      '<Currency><CurrencyCode>USD',
      '<CurrencyCode>JPY',
      '<CurrencyCode>KWD',
      '<WithholdingTax>',
      '<InvoiceType>NC',
      '<InvoiceType>FR',
      '<InvoiceType>FS',
      '<Payment>',
      '<InvoiceStatus>A',
      '<TaxCode>NOR',
      '<TaxCode>RED',
      '<TaxCode>ISE',
      '<TaxCode>OUT',
      '<DebitAmount>',
    ])
      assert.ok(text.includes(there), there)
  })

  test('has every document of an invoice once, and no document of MOSS', async () => {
    const filed: string[] = []
    for (const file of files)
      for await (const part of readSaft(toStream(file)))
        if (part.kind === 'document') filed.push(part.document.atcud ?? '')
    assert.equal(new Set(filed).size, filed.length)
    const issued = [...documents.documents.values()].filter(
      ({ type, status, sequence_number }) =>
        sequence_number !== null && status !== 'deleted' && !type.startsWith('VatMoss'),
    )
    // A second print has the number of its original.
    const numbers = new Set(issued.map(({ type, sequence_number }) => `${type} ${sequence_number}`))
    assert.equal(filed.length, numbers.size)
  })

  test('has its documents’ amounts in euros, retained tax, and amounts in the invoice’s currency', async () => {
    const byNumber = new Map(
      [...documents.documents.values()].map(document => [document.sequence_number, document] as const),
    )
    let [withheld, foreign] = [0, 0]
    for (const file of files)
      for await (const part of readSaft(toStream(file))) {
        if (part.kind !== 'document') continue
        const [, series = '', number] = /(\w+)\/(\d+)$/.exec(part.document.number) ?? []
        const { before_taxes, taxes, retention, multicurrency } =
          byNumber.get(`${number}/${series}`) ?? assert.fail(part.document.number)
        assert.equal(part.document.net, before_taxes.toFixed(2))
        assert.equal(part.document.tax, taxes.toFixed(2))
        assert.equal(part.document.gross, (before_taxes + taxes).toFixed(2))
        const kept = Math.round(before_taxes * Number(retention ?? 0)) / 100
        assert.equal(part.document.withheld, kept.toFixed(2))
        assert.equal(part.document.foreign?.currency, multicurrency?.code.toUpperCase())
        if (multicurrency) assert.equal(Number(part.document.foreign?.amount), multicurrency.total)
        if (retention !== null) withheld++
        if (multicurrency !== undefined) foreign++
      }
    assert.ok(withheld > 5 && foreign > 5, `${withheld} ${foreign}`)
  })
})

async function* toStream(file: Buffer): AsyncGenerator<Buffer> {
  yield file
}

describe('the check of SAF-T rules in the tests', () => {
  const row: SaftRow = {
    number: 'FT A/1',
    atcud: 'JFX8PR2J-1',
    status: 'N',
    date: '2026-10-10',
    customer: '1',
    net: 100,
    gross: 123,
  }
  const rows: SaftRow[] = [
    row,
    { ...row, number: 'FT A/2', atcud: 'JFX8PR2J-2', gross: 100 },
    {
      ...row,
      number: 'FT A/3',
      atcud: 'JFX8PR2J-3',
      foreign: { code: 'usd', amount: 133.7, rate: 1.087 },
      withheld: 25,
    },
    { ...row, number: 'NC N/1', atcud: 'JNC3M7ZK-1', about: { number: 'FT A/1', date: '2026-10-10' } },
  ]
  const customers = [{ id: '1', taxId: '999999990', name: 'Consumidor final' }]
  const file: SaftFile = {
    month: '2026-10',
    customers,
    sales: rows,
    receipts: [{ ...row, number: 'RG R/1', atcud: 'JRG5V2HD-1' }],
  }
  const text = writeSaft(file).toString('latin1')

  test('accepts a correct file', () => assert.deepEqual(findSaftFaults(Buffer.from(text, 'latin1')), []))

  const changes: [name: string, from: string | RegExp, to: string, fault: RegExp][] = [
    [
      'another order',
      /(<ATCUD>[^<]*<\/ATCUD>)(<DocumentStatus>.*?<\/DocumentStatus>)/,
      '$2$1',
      /^\/AuditFile.*\/Invoice has InvoiceNo DocumentStatus ATCUD/,
    ],
    [
      'a missing element',
      /<SystemEntryDate>[^<]*<\/SystemEntryDate>/,
      '',
      /\/Invoice has .*, and not InvoiceNo/,
    ],
    ['an element that is not known', '<SourceBilling>', '<Source/><SourceBilling>', /\/DocumentStatus has/],
    ['a number without a series', '<InvoiceNo>FT A/1<', '<InvoiceNo>FT 1<', /\/InvoiceNo is 'FT 1'/],
    ['an ATCUD of another number', 'JFX8PR2J-1<', 'JFX8PR2J-9<', /^FT A\/1: its ATCUD is JFX8PR2J-9$/],
    ['another version', '1.04_01</Audit', '1.03_01</Audit', /AuditFileVersion is '1\.03_01'/],
    ['a company without a country', '<Country>PT', '<Country>Portugal', /CompanyAddress\/Country/],
    [
      'a tax id of eight digits',
      'TaxRegistrationNumber>509442013',
      'TaxRegistrationNumber>50944201',
      /TaxRegistrationNumber/,
    ],
    ['a type of 2012', '<InvoiceType>FT', '<InvoiceType>VD', /InvoiceType is 'VD'/],
    [
      'a type that is not the number’s',
      '<InvoiceType>FT',
      '<InvoiceType>FS',
      /^FT A\/1: its type is not FT$/,
    ],
    ['an unknown tax', '<TaxType>IVA', '<TaxType>VAT', /TaxType is 'VAT'/],
    ['a country by name', '<TaxCountryRegion>PT', '<TaxCountryRegion>Portugal', /TaxCountryRegion/],
    ['a tax code with a blank', '<TaxCode>NOR', '<TaxCode>NOR 23', /TaxCode is 'NOR 23'/],
    ['a percentage with its sign', '<TaxPercentage>23', '<TaxPercentage>23%', /TaxPercentage is '23%'/],
    [
      'an exemption without its code',
      /<TaxExemptionCode>[^<]*<\/TaxExemptionCode>/,
      '',
      /^FT A\/2: its line of 0 % has 1 of reason and code$/,
    ],
    [
      'an exemption where tax is due',
      '<TaxPercentage>0</TaxPercentage></Tax>',
      '<TaxPercentage>6</TaxPercentage></Tax>',
      /^FT A\/2: its line of 6 % has 2 of reason and code$/,
    ],
    [
      'a short reason',
      /<TaxExemptionReason>[^<]*</,
      '<TaxExemptionReason>Art9<',
      /TaxExemptionReason is 'Art9'/,
    ],
    ['another source', '<SourceBilling>P', '<SourceBilling>X', /SourceBilling is 'X'/],
    ['a short hash', /<Hash>[^<]*</, '<Hash>abcd<', /Hash is 'abcd'/],
    ['a thirteenth period', '<Period>10', '<Period>13', /Period is '13'/],
    ['another month’s period', '<Period>10', '<Period>9', /^FT A\/1: its Period is 9 on 2026-10-10$/],
    ['an unknown status', '<InvoiceStatus>N', '<InvoiceStatus>X', /InvoiceStatus is 'X'/],
    ['an invalid day', '<InvoiceDate>2026-10-10', '<InvoiceDate>2026-02-30', /InvoiceDate is '2026-02-30'/],
    ['a total of one decimal', '<NetTotal>100.00', '<NetTotal>100.0', /NetTotal is '100\.0'/],
    ['a negative total', '<NetTotal>100.00', '<NetTotal>-100.00', /NetTotal is '-100\.00'/],
    [
      'totals that do not add up',
      '<TaxPayable>23.00',
      '<TaxPayable>24.00',
      /^FT A\/1: 10000 and 2400 are not 12300$/,
    ],
    [
      'lines that do not add up to the total',
      '<CreditAmount>100.00',
      '<CreditAmount>90.00',
      /^FT A\/1: its lines are 9000, and not 10000$/,
    ],
    [
      'a section that does not add up',
      /<TotalCredit>[^<]*</,
      '<TotalCredit>1.00<',
      /^SalesInvoices: TotalCredit is not 30000$/,
    ],
    [
      'a wrong number of entries',
      '<NumberOfEntries>4',
      '<NumberOfEntries>5',
      /^SalesInvoices: NumberOfEntries is wrong$/,
    ],
    [
      'a currency block for the euro',
      '<CurrencyCode>USD',
      '<CurrencyCode>EUR</CurrencyCode><CurrencyCode>USD',
      /Currency has/,
    ],
    [
      'the euro as another currency',
      '<CurrencyCode>USD',
      '<CurrencyCode>EUR',
      /Currency\/CurrencyCode is 'EUR'/,
    ],
    [
      'an inverted exchange rate',
      /<ExchangeRate>[^<]*</,
      '<ExchangeRate>1.087<',
      /^FT A\/3: 145\.\d+ are not 12300 in cents$/,
    ],
    [
      'a currency after the total',
      /(<DocumentTotals>[^/]*.*?)(<Currency>.*?<\/Currency>)(<\/DocumentTotals>)/,
      '$1$3$2',
      /\/Invoice has/,
    ],
    [
      'retained tax of an unknown kind',
      '<WithholdingTaxType>IRC',
      '<WithholdingTaxType>IVA',
      /WithholdingTaxType is 'IVA'/,
    ],
    [
      'retained tax inside the totals',
      /(<\/DocumentTotals>)(<WithholdingTax>.*?<\/WithholdingTax>)/,
      '$2$1',
      /DocumentTotals has/,
    ],
    ['two customers with one ID', /(<Customer>.*?<\/Customer>)/, '$1$1', /^1 is there twice$/],
    ['two documents with one number', 'FT A/2<', 'FT A/1<', /^FT A\/1 is there twice$/],
    [
      'a missing customer',
      /<MasterFiles><Customer>.*?<\/Customer>/,
      '<MasterFiles>',
      /^there is no customer 1$/,
    ],
    ['a missing product', /<Product>.*?<\/Product>/, '', /^there is no product Serviço$/],
    [
      'a credit note without a document',
      /<References>.*?<\/References>/,
      '',
      /^NC N\/1: a line names no document$/,
    ],
    ['a receipt of another type', '<PaymentType>RG', '<PaymentType>RC', /^RG R\/1: its type is not RG$/],
  ]
  for (const [name, from, to, fault] of changes)
    test(`finds ${name}`, () => {
      const changed = text.replace(from, to)
      assert.notEqual(changed, text)
      const found = findSaftFaults(Buffer.from(changed, 'latin1'))
      assert.ok(
        found.some(each => fault.test(each)),
        found.join('\n'),
      )
    })
})
