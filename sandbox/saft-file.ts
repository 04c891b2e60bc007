/** A month's SAF-T (PT) 1.04_01 file, in Windows-1252, of invented documents. */
import { lastDayOf } from '../src/calendar.ts'

/** Euros for one of a currency. */
export const rates: Record<string, number> = { eur: 1, usd: 0.92, jpy: 0.0061, kwd: 3.01 }

/** One document of the file. Amounts are in euros. */
export interface SaftRow {
  /** As printed, such as FT A/123. */
  number: string
  atcud: string
  status: 'N' | 'A'
  date: string
  customer: string
  net: number
  gross: number
  /** Absent for the euro. */
  foreign?: { code: string; amount: number }
}

export interface SaftFile {
  /** YYYY-MM. */
  month: string
  customers: readonly { id: string; taxId: string; name: string }[]
  sales: readonly SaftRow[]
  receipts?: readonly SaftRow[]
  /** Added to the section's TotalCredit. */
  surplus?: number
}

export function writeSaft({ month, customers, sales, receipts = [], surplus = 0 }: SaftFile): Buffer {
  const xml = `<?xml version="1.0" encoding="Windows-1252" standalone="yes"?>
<AuditFile xmlns="urn:OECD:StandardAuditFile-Tax:PT_1.04_01" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">${tag(
    'Header',
    {
      AuditFileVersion: '1.04_01',
      CompanyID: '509442013',
      TaxRegistrationNumber: '509442013',
      TaxAccountingBasis: 'F',
      CompanyName: 'Ensaio & Ilustração, Lda',
      CompanyAddress: address,
      FiscalYear: month.slice(0, 4),
      StartDate: `${month}-01`,
      EndDate: lastDayOf(month),
      CurrencyCode: 'EUR',
      DateCreated: lastDayOf(month),
      TaxEntity: 'Global',
      ProductCompanyTaxID: '509442013',
      SoftwareCertificateNumber: '0',
      ProductID: 'Fatura/Sandbox',
      ProductVersion: '1',
    },
  )}<MasterFiles>${customers
    .map(({ id, taxId, name }) =>
      tag('Customer', {
        CustomerID: id,
        AccountID: 'Desconhecido',
        CustomerTaxID: taxId,
        CompanyName: name,
        BillingAddress: address,
        SelfBillingIndicator: '0',
      }),
    )
    .join('\n')}</MasterFiles>
<SourceDocuments>${writeSales(sales, surplus)}${receipts.length === 0 ? '' : writeReceipts(receipts)}</SourceDocuments>
</AuditFile>
`
  return Buffer.from(
    xml.replace(/[\u0080-\u009f]|[^\0-\xff]/gu, character => `&#${character.codePointAt(0)};`),
    'latin1',
  )
}

const address = {
  AddressDetail: 'Desconhecido',
  City: 'Desconhecido',
  PostalCode: 'Desconhecido',
  Country: 'Desconhecido',
}

function writeSales(rows: readonly SaftRow[], surplus: number): string {
  const isCredit = ({ number }: SaftRow) => number.startsWith('NC')
  const sum = (isOf: (row: SaftRow) => boolean) =>
    rows.filter(row => row.status !== 'A' && isOf(row)).reduce((all, { net }) => all + cents(net), 0) / 100
  const head = totalsOf(rows, sum(isCredit), sum(row => !isCredit(row)) + surplus)
  const all = rows.map(row =>
    tag('Invoice', {
      InvoiceNo: row.number,
      ATCUD: row.atcud,
      DocumentStatus: statusOf(row, 'Invoice', 'SourceBilling'),
      Hash: '0',
      HashControl: '0',
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
      Line: {
        LineNumber: '1',
        ProductCode: 'S',
        ProductDescription: 'Serviço',
        Quantity: '1',
        UnitOfMeasure: 'un',
        UnitPrice: money(row.net),
        TaxPointDate: row.date,
        Description: 'Serviço',
        [isCredit(row) ? 'DebitAmount' : 'CreditAmount']: money(row.net),
        ...taxOf(row),
      },
      DocumentTotals: writeTotals(row),
    }),
  )
  return `<SalesInvoices>${head}${all.join('\n')}</SalesInvoices>`
}

function taxOf({ net, gross }: SaftRow): Fields {
  const percent = net === 0 ? 0 : Math.round((100 * (gross - net)) / net)
  const tax = (code: string): Fields => ({
    Tax: { TaxType: 'IVA', TaxCountryRegion: 'PT', TaxCode: code, TaxPercentage: String(percent) },
  })
  return percent > 0 ? tax('OUT') : { ...tax('ISE'), TaxExemptionReason: 'Isento', TaxExemptionCode: 'M07' }
}

function writeReceipts(rows: readonly SaftRow[]): string {
  const sum = rows.filter(({ status }) => status !== 'A').reduce((all, { net }) => all + cents(net), 0) / 100
  const all = rows.map(row =>
    tag('Payment', {
      PaymentRefNo: row.number,
      ATCUD: row.atcud,
      TransactionDate: row.date,
      PaymentType: 'RG',
      DocumentStatus: statusOf(row, 'Payment', 'SourcePayment'),
      SourceID: 'sandbox',
      SystemEntryDate: `${row.date}T09:00:00`,
      CustomerID: row.customer,
      Line: {
        LineNumber: '1',
        SourceDocumentID: { OriginatingON: row.number, InvoiceDate: row.date },
        CreditAmount: money(row.net),
      },
      DocumentTotals: writeTotals(row),
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
    SourceID: 'sandbox',
    [source]: 'P',
  }
}

function writeTotals({ net, gross, foreign }: SaftRow): Fields {
  return {
    TaxPayable: money(gross - net),
    NetTotal: money(net),
    GrossTotal: money(gross),
    ...(foreign && {
      Currency: {
        CurrencyCode: foreign.code.toUpperCase(),
        CurrencyAmount: String(foreign.amount),
        ExchangeRate: String(rates[foreign.code] ?? 1),
      },
    }),
  }
}

type Fields = { [name: string]: string | Fields }

function tag(name: string, fields: Fields): string {
  const inner = Object.entries(fields).map(([key, value]) =>
    typeof value === 'string' ? `<${key}>${escapeText(value)}</${key}>` : tag(key, value),
  )
  return `<${name}>${inner.join('')}</${name}>`
}

function escapeText(text: string): string {
  return text.replace(/[&<>]/g, sign => ({ '&': '&amp;', '<': '&lt;' })[sign] ?? '&gt;')
}

function cents(amount: number): number {
  return Math.round(amount * 100)
}

function money(amount: number): string {
  return (cents(amount) / 100).toFixed(2)
}
