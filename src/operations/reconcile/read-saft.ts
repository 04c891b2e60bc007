/** Reads the documents of a SAF-T (PT) file, the monthly file for the tax authority. A file of any size needs constant memory. */
import sax from 'sax'
import { isCalendarDay } from '../../domain/calendar.ts'
import { toMillionths, writeAmount } from '../../domain/money.ts'
import { decodeXml, FileError } from './decode-xml.ts'

export type SaftHeader = ReturnType<typeof readHeader>

export type SaftDocument = ReturnType<typeof readDocument>

/** Declared figures of a section, and the sums of its documents. Sums are in millionths. */
export type SaftTotals = ReturnType<typeof noTotals>

type TotalName = keyof SaftTotals['counted']
type SaftSection = 'SalesInvoices' | 'Payments'

export type SaftPart =
  | { kind: 'header'; header: SaftHeader }
  | { kind: 'customer'; id: string; taxId: string }
  | { kind: 'document'; document: SaftDocument }
  | { kind: 'totals'; totals: SaftTotals }

/** Yields the header first, and customers before documents. Throws a `FileError`. */
export async function* readSaft(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<SaftPart> {
  const parts: SaftPart[] = []
  const parser = new SaftParser(part => parts.push(part))
  for await (const text of decodeXml(bytes)) {
    parser.write(text)
    yield* parts.splice(0)
  }
  parser.end()
  yield* parts.splice(0)
}

const namespace = 'urn:OECD:StandardAuditFile-Tax:PT_'
const deepest = 32
const longestText = 255

const records = new Set([
  '/Header',
  '/MasterFiles/Customer',
  '/SourceDocuments/SalesInvoices/Invoice',
  '/SourceDocuments/Payments/Payment',
])

const sections: Record<string, SaftSection> = {
  '/SourceDocuments/SalesInvoices': 'SalesInvoices',
  '/SourceDocuments/Payments': 'Payments',
}

/** Only the entities of XML are allowed. Entities of HTML are errors. */
const options: sax.SAXOptions & { strictEntities: true } = { strictEntities: true }

/** Parses the XML and emits each part when its element ends. */
class SaftParser {
  private readonly xml = sax.parser(true, options)
  private readonly emit: (part: SaftPart) => void
  /** Paths of the open elements, outermost first. */
  private readonly open: string[] = []
  private isHeaderRead = false
  private isRootClosed = false
  /** Text of the innermost element. Null when that element contains other elements. */
  private text: string | null = null
  private record: OpenRecord | null = null
  private totals = noTotals('SalesInvoices')

  constructor(emit: (part: SaftPart) => void) {
    this.emit = emit
    this.xml.onopentag = ({ name, attributes }) => this.openElement(name, attributes)
    this.xml.ontext = this.xml.oncdata = piece => {
      if (this.text !== null && this.text.length <= longestText) this.text += piece
    }
    this.xml.onclosetag = () => this.closeElement()
    // A document type declaration could define entities, which allow attacks. A SAF-T file has none.
    this.xml.ondoctype = () => {
      throw new FileError('is not a SAF-T (PT) file: it has a document type declaration')
    }
    this.xml.onerror = ({ message }) => {
      throw this.explain(message)
    }
  }

  write(piece: string): void {
    this.xml.write(piece)
  }

  end(): void {
    this.xml.close()
    if (!this.isRootClosed) throw new FileError('is not a SAF-T (PT) file: it is empty')
    if (!this.isHeaderRead) throw new FileError('is not a SAF-T (PT) file: it has no Header')
  }

  private openElement(name: string, attributes: Readonly<Record<string, unknown>>): void {
    const colon = name.indexOf(':')
    const local = name.slice(colon + 1)
    const parent = this.open.at(-1)
    if (parent === undefined) {
      if (this.isRootClosed) throw new FileError('is not well-formed XML: it has two roots')
      checkRoot(local, String(attributes[colon > 0 ? `xmlns:${name.slice(0, colon)}` : 'xmlns'] ?? ''))
    }
    if (this.open.length === deepest)
      throw new FileError('is not a SAF-T (PT) file: its elements are nested too deep')
    const path = parent === undefined ? '' : `${parent}/${local}`
    this.open.push(path)
    const section = sections[path]
    if (section !== undefined) this.totals = noTotals(section)
    if (records.has(path)) this.record = new OpenRecord(path)
    this.text = ''
  }

  private closeElement(): void {
    const path = this.open.pop() ?? ''
    if (this.text !== null) this.keep(path, this.text.trim().slice(0, longestText))
    this.text = null
    if (this.record?.path === path) {
      this.finish(this.record)
      this.record = null
    }
    if (path in sections) this.emit({ kind: 'totals', totals: this.totals })
    if (path === '') this.isRootClosed = true
  }

  private keep(path: string, value: string): void {
    const section = path.slice(0, path.lastIndexOf('/'))
    if (section in sections) this.totals.declared[path.slice(section.length + 1) as TotalName] = value
    this.record?.keep(path, value)
  }

  private finish({ path, fields, lines, withheld }: OpenRecord): void {
    if (path === '/Header') {
      this.emit({ kind: 'header', header: readHeader(fields) })
      this.isHeaderRead = true
      return
    }
    if (!this.isHeaderRead) throw new FileError('is not a SAF-T (PT) file: it does not begin with a Header')
    if (path === '/MasterFiles/Customer') {
      const [id = '', taxId = ''] = [fields.get('CustomerID'), fields.get('CustomerTaxID')]
      this.emit({ kind: 'customer', id, taxId })
      return
    }
    const { section, counted } = this.totals
    const document = readDocument(section, fields, withheld)
    counted.NumberOfEntries++
    // Canceled documents (A), and documents that another document bills (F), do not count in the sums.
    if (document.status !== 'A' && document.status !== 'F') {
      counted.TotalDebit += lines.TotalDebit
      counted.TotalCredit += lines.TotalCredit
    }
    this.emit({ kind: 'document', document })
  }

  private explain(message: string): FileError {
    const [reason = ''] = message.split('\n')
    if (/^Unclosed|^Unexpected end/.test(reason))
      return new FileError(`is cut off: it ends within ${this.open.at(-1)?.split('/').at(-1) || 'AuditFile'}`)
    return new FileError(
      this.open.length === 0 && !this.isRootClosed
        ? 'is not a SAF-T (PT) file: it is not XML'
        : `is not well-formed XML, at line ${this.xml.line + 1}`,
    )
  }
}

/** A header, customer or document whose elements are being read. */
class OpenRecord {
  readonly path: string
  /** Texts by path below the record. */
  readonly fields = new Map<string, string>()
  /** Sums of the document's lines, in millionths. */
  readonly lines = { TotalDebit: 0n, TotalCredit: 0n }
  withheld = 0n

  constructor(path: string) {
    this.path = path
  }

  keep(path: string, value: string): void {
    const field = path.slice(this.path.length + 1)
    const [, side] = /^Line\/(Debit|Credit)Amount$/.exec(field) ?? []
    // A document may have several amounts of lines and several withheld taxes, so they are added up.
    if (side !== undefined)
      this.lines[side === 'Debit' ? 'TotalDebit' : 'TotalCredit'] += readAmount(`${side}Amount`, value)
    else if (field === 'WithholdingTax/WithholdingTaxAmount')
      this.withheld += readAmount('WithholdingTaxAmount', value)
    else this.fields.set(field, value)
  }
}

/** Returns the amount in millionths. Throws a `FileError` when the text is not an amount. */
function readAmount(name: string, value: string): bigint {
  const amount = toMillionths(value)
  if (amount === null) throw new FileError(`is not a SAF-T (PT) file: its ${name} is no amount`)
  return amount
}

function noTotals(section: SaftSection) {
  const declared = { NumberOfEntries: '', TotalDebit: '', TotalCredit: '' }
  return { section, declared, counted: { NumberOfEntries: 0, TotalDebit: 0n, TotalCredit: 0n } }
}

function checkRoot(local: string, uri: string): void {
  if (uri.startsWith(namespace) && local === 'AuditFile') return
  const found = `its root is ${local.slice(0, 40)}${uri && ` of ${uri.slice(0, 80)}`}`
  throw new FileError(
    /StandardAuditFile/i.test(uri)
      ? `is a SAF-T file of another country than Portugal: ${found}`
      : `is not a SAF-T (PT) file: ${found}`,
  )
}

function readHeader(fields: ReadonlyMap<string, string>) {
  const header = {
    taxId: fields.get('TaxRegistrationNumber') ?? '',
    company: fields.get('CompanyName') ?? '',
    /** First and last day of the file, YYYY-MM-DD. */
    from: fields.get('StartDate') ?? '',
    to: fields.get('EndDate') ?? '',
  }
  if (!isCalendarDay(header.from) || !isCalendarDay(header.to) || header.taxId === '')
    throw new FileError('is not a SAF-T (PT) file: its Header has no company or no days')
  return header
}

/** `withheld` is in millionths. */
function readDocument(section: SaftSection, fields: ReadonlyMap<string, string>, withheld: bigint) {
  const isSale = section === 'SalesInvoices'
  const kind = isSale ? 'Invoice' : 'Payment'
  const need = (name: string) => {
    const value = fields.get(name)
    if (!value) throw new FileError(`is not a SAF-T (PT) file: it has a document without ${name}`)
    return value
  }
  const atcud = fields.get('ATCUD') ?? ''
  const currency = fields.get('DocumentTotals/Currency/CurrencyCode')
  return {
    section,
    /** The number as printed, for example "FT A/123". */
    number: need(isSale ? 'InvoiceNo' : 'PaymentRefNo'),
    // Documents of series older than the ATCUD have "0" or an empty text.
    atcud: atcud === '' || atcud === '0' ? null : atcud,
    /** The document type's code, for example FT. Receipts have RG. */
    type: need(`${kind}Type`),
    /** N is normal, A canceled, S self-billed, R summarized, and F billed by another document. */
    status: need(`DocumentStatus/${kind}Status`),
    date: need(isSale ? 'InvoiceDate' : 'TransactionDate'),
    customer: fields.get('CustomerID') ?? '',
    /** Decimals in euros. `gross` includes taxes. A withheld tax is not subtracted. */
    net: need('DocumentTotals/NetTotal'),
    tax: need('DocumentTotals/TaxPayable'),
    gross: need('DocumentTotals/GrossTotal'),
    /** The tax that the customer withholds, as a decimal in euros. */
    withheld: writeAmount(Number(withheld / 10_000n), 'eur'),
    /** The total in another currency. Null for a document in euros. `rate` is the value of one unit in euros. */
    foreign: currency
      ? {
          currency,
          amount: fields.get('DocumentTotals/Currency/CurrencyAmount') ?? '',
          rate: fields.get('DocumentTotals/Currency/ExchangeRate') ?? '',
        }
      : null,
  }
}
