/** Writes a month's SAF-T (PT) 1.04_01 file with invented documents, in Windows-1252. The file follows the tax authority's schema. */
import { hash } from 'node:crypto'
import { lastDayOf } from '../src/domain/calendar.ts'
import { decimalsOf } from '../src/domain/money.ts'
import { cents, type Fields, money, tag, unique } from './saft-xml.ts'

/** A document of the SAF-T file. Amounts are in euros. */
export interface SaftRow {
  /** The number as printed, for example "FT A/123". */
  number: string
  atcud: string
  status: 'N' | 'A'
  date: string
  customer: string
  net: number
  /** Net amount and tax. A withheld tax is not subtracted. */
  gross: number
  /** Default: one line with the whole amount. */
  lines?: readonly SaftLine[]
  /** The total in another currency. Missing for a document in euros. `rate` is the value of one euro in this currency. */
  foreign?: { code: string; amount: number; rate?: number }
  withheld?: number
  /** The document that a credit note or receipt refers to. */
  about?: { number: string; date: string }
}

export interface SaftLine {
  name: string
  quantity: number
  /** Amount before taxes and after discounts. A negative amount reduces the document. */
  net: number
  percent: number
  /** Country of the tax. Default: Portugal. */
  country?: string
}

export interface SaftFile {
  /** The month of the file, YYYY-MM. */
  month: string
  customers: readonly { id: string; taxId: string; name: string }[]
  sales: readonly SaftRow[]
  receipts?: readonly SaftRow[]
  /** Amount by which the section's TotalCredit is too high. */
  surplus?: number
}

export function writeSaft({ month, customers, sales, receipts = [], surplus = 0 }: SaftFile): Buffer {
  const lines = sales.flatMap(row => [...linesOf(row)])
  const xml = `<?xml version="1.0" encoding="Windows-1252" standalone="yes"?>
<AuditFile xmlns="urn:OECD:StandardAuditFile-Tax:PT_1.04_01" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">${writeHeader(month)}<MasterFiles>${[
    ...customers.map(writeCustomer),
    ...unique(lines, ({ name }) => name).map(writeProduct),
    writeTaxTable(lines),
  ].join('\n')}</MasterFiles>
<SourceDocuments>${writeSales(sales, surplus)}${receipts.length === 0 ? '' : writeReceipts(receipts)}</SourceDocuments>
</AuditFile>
`
  return Buffer.from(
    xml.replace(/[\u0080-\u009f]|[^\0-\xff]/gu, character => `&#${character.codePointAt(0)};`),
    'latin1',
  )
}

/** Returns a text that looks like a document's signature, 172 characters long. It is not a valid signature. */
export function hashOf(text: string): string {
  return [0, 1]
    .map(part => hash('sha512', `${part}${text}`, 'buffer'))
    .reduce(joined)
    .toString('base64')
}

const joined = (one: Buffer, other: Buffer) => Buffer.concat([one, other])

function writeHeader(month: string): string {
  return tag('Header', {
    AuditFileVersion: '1.04_01',
    CompanyID: '509442013',
    TaxRegistrationNumber: '509442013',
    TaxAccountingBasis: 'F',
    CompanyName: 'Ensaio & Ilustração, Lda',
    CompanyAddress: {
      AddressDetail: 'Rua do Ensaio, 12, 3.º',
      City: 'Lisboa',
      PostalCode: '1200-109',
      Country: 'PT',
    },
    FiscalYear: month.slice(0, 4),
    StartDate: `${month}-01`,
    EndDate: lastDayOf(month),
    CurrencyCode: 'EUR',
    DateCreated: lastDayOf(month),
    TaxEntity: 'Global',
    ProductCompanyTaxID: '509442013',
    SoftwareCertificateNumber: '9999',
    ProductID: 'Fatura/Sandbox',
    ProductVersion: '1',
  })
}

const unknown = 'Desconhecido'

function writeCustomer({ id, taxId, name }: SaftFile['customers'][number]): string {
  return tag('Customer', {
    CustomerID: id,
    AccountID: unknown,
    CustomerTaxID: taxId,
    CompanyName: name,
    BillingAddress: { AddressDetail: unknown, City: unknown, PostalCode: unknown, Country: unknown },
    SelfBillingIndicator: '0',
  })
}

function writeProduct({ name }: SaftLine): string {
  return tag('Product', {
    ProductType: 'S',
    ProductCode: name,
    ProductDescription: name,
    ProductNumberCode: name,
  })
}

function writeTaxTable(lines: readonly SaftLine[]): string {
  const entries = unique(lines, line => `${regionOf(line)} ${line.percent}`)
  if (entries.length === 0) return ''
  const all = entries.map(line => {
    const { TaxPercentage, ...tax } = taxOf(line)
    return tag('TaxTableEntry', { ...tax, Description: `Taxa de ${TaxPercentage} %`, TaxPercentage })
  })
  return `<TaxTable>${all.join('')}</TaxTable>`
}

const isCredit = ({ number }: SaftRow) => number.startsWith('NC')

/** Yields the row's lines. Without lines, yields one line with the whole amount. */
function* linesOf({ lines, net, gross }: SaftRow): Iterable<SaftLine> {
  const percent = net === 0 ? 0 : Math.round((100 * (gross - net)) / net)
  yield* lines ?? [{ name: 'Serviço', quantity: 1, net, percent }]
}

function writeSales(rows: readonly SaftRow[], surplus: number): string {
  let [debit, credit] = [0, 0]
  for (const row of rows)
    if (row.status !== 'A')
      for (const line of linesOf(row)) {
        if (isDebit(row, line)) debit += Math.abs(cents(line.net))
        else credit += Math.abs(cents(line.net))
      }
  const totals = totalsOf(rows, debit / 100, credit / 100 + surplus)
  return `<SalesInvoices>${totals}${rows.map(writeSale).join('\n')}</SalesInvoices>`
}

/** Lines of invoices are credits, and lines of credit notes are debits. A negative amount swaps the two. */
function isDebit(row: SaftRow, { net }: SaftLine): boolean {
  return isCredit(row) !== net < 0
}

function writeSale(row: SaftRow): string {
  return tag('Invoice', {
    InvoiceNo: row.number,
    ATCUD: row.atcud,
    DocumentStatus: statusOf(row, 'Invoice', 'SourceBilling'),
    Hash: hashOf(row.number),
    HashControl: '1',
    Period: String(Number(row.date.slice(5, 7))),
    InvoiceDate: row.date,
    InvoiceType: row.number.split(' ')[0] ?? '',
    SpecialRegimes: {
      SelfBillingIndicator: '0',
      CashVATSchemeIndicator: '0',
      ThirdPartiesBillingIndicator: '0',
    },
    SourceID: 'sandbox',
    SystemEntryDate: `${row.date}T09:00:00`,
    CustomerID: row.customer,
    Line: [...linesOf(row)].map((line, index) => writeLine(row, line, index + 1)),
    DocumentTotals: { ...writeTotals(row), ...writeCurrency(row) },
    ...(row.withheld && {
      WithholdingTax: { WithholdingTaxType: 'IRC', WithholdingTaxAmount: money(row.withheld) },
    }),
  })
}

function writeLine(row: SaftRow, line: SaftLine, number: number): Fields {
  const { name, quantity, net, percent } = line
  return {
    LineNumber: String(number),
    ProductCode: name,
    ProductDescription: name,
    Quantity: String(quantity),
    UnitOfMeasure: 'un',
    UnitPrice: (Math.abs(net) / quantity).toFixed(4),
    TaxPointDate: row.date,
    ...(isCredit(row) && {
      References: { Reference: row.about?.number ?? 'Documento de outro programa', Reason: 'Devolução' },
    }),
    Description: name,
    [isDebit(row, line) ? 'DebitAmount' : 'CreditAmount']: money(Math.abs(net)),
    Tax: taxOf(line),
    ...(percent === 0 && { TaxExemptionReason: 'Isento artigo 9.º do CIVA', TaxExemptionCode: 'M07' }),
  }
}

const regionOf = ({ country = 'PT' }: SaftLine) => country

/** Codes of the tax rates in mainland Portugal. */
const taxCodes: Record<number, string> = { 0: 'ISE', 6: 'RED', 13: 'INT', 23: 'NOR' }

function taxOf(line: SaftLine) {
  const code = regionOf(line) === 'PT' || line.percent === 0 ? taxCodes[line.percent] : undefined
  return {
    TaxType: 'IVA',
    TaxCountryRegion: regionOf(line),
    TaxCode: code ?? 'OUT',
    TaxPercentage: String(line.percent),
  }
}

function writeReceipts(rows: readonly SaftRow[]): string {
  const sum = rows.filter(({ status }) => status !== 'A').reduce((all, { net }) => all + cents(net), 0) / 100
  const all = rows.map(row =>
    tag('Payment', {
      PaymentRefNo: row.number,
      ATCUD: row.atcud,
      Period: String(Number(row.date.slice(5, 7))),
      TransactionDate: row.date,
      PaymentType: 'RG',
      DocumentStatus: statusOf(row, 'Payment', 'SourcePayment'),
      SourceID: 'sandbox',
      SystemEntryDate: `${row.date}T09:00:00`,
      CustomerID: row.customer,
      Line: {
        LineNumber: '1',
        SourceDocumentID: {
          OriginatingON: row.about?.number ?? row.number,
          InvoiceDate: row.about?.date ?? row.date,
        },
        CreditAmount: money(row.net),
      },
      DocumentTotals: { ...writeTotals(row), ...writeCurrency(row) },
      ...(row.withheld && {
        WithholdingTax: { WithholdingTaxType: 'IRC', WithholdingTaxAmount: money(row.withheld) },
      }),
    }),
  )
  return `<Payments>${totalsOf(rows, 0, sum)}${all.join('\n')}</Payments>`
}

function totalsOf(rows: readonly SaftRow[], debit: number, credit: number): string {
  return `<NumberOfEntries>${rows.length}</NumberOfEntries><TotalDebit>${money(debit)}</TotalDebit><TotalCredit>${money(credit)}</TotalCredit>\n`
}

function statusOf({ status, date }: SaftRow, kind: 'Invoice' | 'Payment', source: string): Fields {
  return {
    [`${kind}Status`]: status,
    [`${kind}StatusDate`]: `${date}T09:00:00`,
    ...(status === 'A' && { Reason: 'Erro de emissão' }),
    SourceID: 'sandbox',
    [source]: 'P',
  }
}

function writeTotals({ net, gross }: SaftRow): Fields {
  return { TaxPayable: money(gross - net), NetTotal: money(net), GrossTotal: money(gross) }
}

/** SAF-T writes the exchange rate as euros for one unit, so that GrossTotal is CurrencyAmount × ExchangeRate. */
function writeCurrency({ foreign, gross }: SaftRow): Fields {
  if (foreign === undefined) return {}
  const { code, amount, rate } = foreign
  const inEuros = rate === undefined ? (amount === 0 ? 1 : gross / amount) : 1 / rate
  return {
    Currency: {
      CurrencyCode: code.toUpperCase(),
      CurrencyAmount: amount.toFixed(Math.max(2, decimalsOf(code))),
      ExchangeRate: inEuros.toFixed(6),
    },
  }
}
