/** Rules of the tax authority's SAF-T (PT) 1.04_01: elements in their order, their types, and what must add up. */
import sax from 'sax'
import { isCalendarDay } from '../../../src/domain/calendar.ts'

interface Element {
  name: string
  /** Its text; of one with others within it, nothing. */
  text: string
  children: Element[]
}

/** The elements within others, in their order: `?` none or one, `*` any number, `+` one or more, `|` one of two. */
const contents: Record<string, string> = {
  AuditFile: 'Header MasterFiles SourceDocuments?',
  Header:
    'AuditFileVersion CompanyID TaxRegistrationNumber TaxAccountingBasis CompanyName BusinessName? CompanyAddress FiscalYear StartDate EndDate CurrencyCode DateCreated TaxEntity ProductCompanyTaxID SoftwareCertificateNumber ProductID ProductVersion HeaderComment? Telephone? Fax? Email? Website?',
  CompanyAddress: 'BuildingNumber? StreetName? AddressDetail City PostalCode Region? Country',
  MasterFiles: 'Customer* Product* TaxTable?',
  Customer:
    'CustomerID AccountID CustomerTaxID CompanyName Contact? BillingAddress Telephone? Fax? Email? Website? SelfBillingIndicator',
  BillingAddress: 'BuildingNumber? StreetName? AddressDetail City PostalCode Region? Country',
  Product: 'ProductType ProductCode ProductGroup? ProductDescription ProductNumberCode',
  TaxTable: 'TaxTableEntry+',
  TaxTableEntry: 'TaxType TaxCountryRegion TaxCode Description TaxExpirationDate? TaxPercentage|TaxAmount',
  SourceDocuments: 'SalesInvoices? Payments?',
  SalesInvoices: 'NumberOfEntries TotalDebit TotalCredit Invoice*',
  Invoice:
    'InvoiceNo ATCUD DocumentStatus Hash HashControl Period? InvoiceDate InvoiceType SpecialRegimes SourceID EACCode? SystemEntryDate TransactionID? CustomerID Line+ DocumentTotals WithholdingTax*',
  'Invoice/DocumentStatus': 'InvoiceStatus InvoiceStatusDate Reason? SourceID SourceBilling',
  SpecialRegimes: 'SelfBillingIndicator CashVATSchemeIndicator ThirdPartiesBillingIndicator',
  'Invoice/Line':
    'LineNumber OrderReferences* ProductCode ProductDescription Quantity UnitOfMeasure UnitPrice TaxBase? TaxPointDate References* Description DebitAmount|CreditAmount Tax TaxExemptionReason? TaxExemptionCode? SettlementAmount?',
  References: 'Reference? Reason?',
  Tax: 'TaxType TaxCountryRegion TaxCode TaxPercentage|TaxAmount',
  'Invoice/DocumentTotals': 'TaxPayable NetTotal GrossTotal Currency? Settlement* Payment*',
  Currency: 'CurrencyCode CurrencyAmount ExchangeRate',
  WithholdingTax: 'WithholdingTaxType? WithholdingTaxDescription? WithholdingTaxAmount',
  Payments: 'NumberOfEntries TotalDebit TotalCredit Payment*',
  Payment:
    'PaymentRefNo ATCUD Period? TransactionID? TransactionDate PaymentType Description? SystemID? DocumentStatus PaymentMethod* SourceID SystemEntryDate CustomerID Line+ DocumentTotals WithholdingTax*',
  'Payment/DocumentStatus': 'PaymentStatus PaymentStatusDate Reason? SourceID SourcePayment',
  'Payment/Line':
    'LineNumber SourceDocumentID+ SettlementAmount? DebitAmount|CreditAmount Tax? TaxExemptionReason? TaxExemptionCode?',
  SourceDocumentID: 'OriginatingON InvoiceDate Description?',
  'Payment/DocumentTotals': 'TaxPayable NetTotal GrossTotal Settlement? Currency?',
}

type Check = (text: string) => boolean

const matches =
  (pattern: RegExp): Check =>
  text =>
    pattern.test(text)
const oneOf = (words: string) => matches(new RegExp(`^(${words.replaceAll(' ', '|')})$`))
const upTo =
  (most: number, least = 1): Check =>
  text =>
    text.length >= least && text.length <= most
/** Never below zero: a credit and a debit are two elements. */
const decimal = matches(/^\d+(\.\d+)?$/)
const cents = matches(/^\d+\.\d{2}$/)
const flag = oneOf('0 1')
const whole = matches(/^\d+$/)
const moment: Check = text => isCalendarDay(text.slice(0, 10)) && /^.{10}T[0-2]\d:[0-5]\d:[0-5]\d$/.test(text)
/** The type's code, a blank, series and number. */
const number = matches(/^[a-zA-Z0-9./_-]+ [a-zA-Z0-9]*\/[0-9]+$/)

const types: Record<string, Check> = {
  AuditFileVersion: oneOf('1\\.04_01'),
  CompanyID: matches(/^(\d{9}|.+ [0-9/]+)$/),
  TaxRegistrationNumber: matches(/^[1-9]\d{8}$/),
  TaxAccountingBasis: oneOf('C E F I P R S T'),
  CompanyName: upTo(100),
  FiscalYear: matches(/^[2-9]\d{3}$/),
  ...Object.fromEntries(['StartDate', 'EndDate', 'DateCreated'].map(name => [name, isCalendarDay])),
  'Header/CurrencyCode': oneOf('EUR'),
  TaxEntity: upTo(20),
  ProductCompanyTaxID: upTo(30),
  SoftwareCertificateNumber: whole,
  ProductID: matches(/^[^/]+\/[^/]+$/),
  ProductVersion: upTo(30),
  AddressDetail: upTo(210),
  City: upTo(50),
  PostalCode: upTo(20),
  'CompanyAddress/Country': matches(/^[A-Z]{2}$/),
  'BillingAddress/Country': matches(/^([A-Z]{2}|Desconhecido)$/),
  CustomerID: upTo(30),
  AccountID: upTo(30),
  CustomerTaxID: upTo(30),
  SelfBillingIndicator: flag,
  CashVATSchemeIndicator: flag,
  ThirdPartiesBillingIndicator: flag,
  ProductType: oneOf('P S O E I'),
  ProductCode: upTo(60),
  ProductDescription: upTo(200, 2),
  ProductNumberCode: upTo(60),
  TaxType: oneOf('IVA IS NS'),
  TaxCountryRegion: matches(/^([A-Z]{2}|PT-AC|PT-MA)$/),
  TaxCode: matches(/^(RED|INT|NOR|ISE|OUT|NS|[a-zA-Z0-9.]{1,10})$/),
  TaxPercentage: decimal,
  TaxAmount: decimal,
  Description: upTo(200),
  NumberOfEntries: whole,
  TotalDebit: cents,
  TotalCredit: cents,
  InvoiceNo: text => number(text) && text.length <= 60,
  PaymentRefNo: text => number(text) && text.length <= 60,
  ATCUD: matches(/^(0|[A-Z0-9]{8,}-\d+)$/),
  InvoiceStatus: oneOf('N S A R F'),
  PaymentStatus: oneOf('N A'),
  InvoiceStatusDate: moment,
  PaymentStatusDate: moment,
  SystemEntryDate: moment,
  Reason: upTo(50),
  SourceID: upTo(30),
  SourceBilling: oneOf('P I M'),
  SourcePayment: oneOf('P I M'),
  Hash: matches(/^(0|[A-Za-z0-9+/]{171}=|[A-Za-z0-9+/]{172})$/),
  HashControl: matches(/^\d+(\.\d+)?$/),
  Period: oneOf(Array.from({ length: 12 }, (_, index) => index + 1).join(' ')),
  InvoiceDate: isCalendarDay,
  TransactionDate: isCalendarDay,
  InvoiceType: oneOf('FT FS FR ND NC'),
  PaymentType: oneOf('RC RG'),
  LineNumber: matches(/^[1-9]\d*$/),
  Quantity: decimal,
  UnitOfMeasure: upTo(20),
  UnitPrice: decimal,
  TaxPointDate: isCalendarDay,
  Reference: upTo(60),
  DebitAmount: decimal,
  CreditAmount: decimal,
  TaxExemptionReason: upTo(60, 6),
  TaxExemptionCode: matches(/^M\d{2}$/),
  OriginatingON: upTo(60),
  TaxPayable: cents,
  NetTotal: cents,
  GrossTotal: cents,
  // Documents in euros have no such block.
  'Currency/CurrencyCode': matches(/^(?!EUR)[A-Z]{3}$/),
  CurrencyAmount: decimal,
  ExchangeRate: decimal,
  WithholdingTaxType: oneOf('IRS IRC IS'),
  WithholdingTaxAmount: cents,
}

/** What does not fit, each with its place; nothing of a file as the tax authority wants it. */
export function findSaftFaults(xml: Buffer): string[] {
  const file = parse(xml.toString('latin1'))
  if (file.name !== 'AuditFile') return ['the root is no AuditFile']
  return [
    ...checkElement(file, null, ''),
    ...checkKeys(file),
    ...checkSection(file, 'SalesInvoices', 'Invoice'),
  ].concat(...checkSection(file, 'Payments', 'Payment'))
}

function parse(xml: string): Element {
  const root: Element = { name: '', text: '', children: [] }
  const open = [root]
  const parser = sax.parser(true, {})
  parser.onopentag = ({ name }) => {
    const element = { name, text: '', children: [] }
    open.at(-1)?.children.push(element)
    open.push(element)
  }
  parser.ontext = text => {
    const element = open.at(-1)
    if (element !== undefined) element.text += text.trim()
  }
  parser.onclosetag = () => void open.pop()
  parser.write(xml).close()
  return root.children[0] ?? root
}

function* checkElement(element: Element, parent: Element | null, place: string): Generator<string> {
  const { name, children, text } = element
  const here = `${place}/${name}`
  const model = contents[`${parent?.name}/${name}`] ?? contents[name]
  if (model === undefined) {
    const check = types[`${parent?.name}/${name}`] ?? types[name]
    if (check === undefined) yield `${here} is not known`
    else if (children.length > 0 || !check(text)) yield `${here} is '${text}'`
    return
  }
  const names = children.map(child => child.name)
  if (!modelPattern(model).test(names.map(each => `${each} `).join('')))
    yield `${here} has ${names.join(' ')}, and not ${model}`
  if (text !== '') yield `${here} has the text '${text}'`
  for (const child of children) yield* checkElement(child, element, here)
}

const patterns = new Map<string, RegExp>()

function modelPattern(model: string): RegExp {
  const known = patterns.get(model)
  if (known !== undefined) return known
  const parts = model.split(' ').map(part => {
    const [, names = '', count = ''] = /^([^?*+]+)([?*+]?)$/.exec(part) ?? []
    return `(?:(?:${names}) )${count}`
  })
  const pattern = new RegExp(`^${parts.join('')}$`)
  patterns.set(model, pattern)
  return pattern
}

const all = (element: Element | undefined, ...path: string[]): Element[] => {
  const [first, ...rest] = path
  if (element === undefined) return []
  if (first === undefined) return [element]
  return element.children.filter(({ name }) => name === first).flatMap(child => all(child, ...rest))
}
const texts = (element: Element | undefined, ...path: string[]) =>
  all(element, ...path).map(({ text }) => text)
const textOf = (element: Element | undefined, ...path: string[]) => texts(element, ...path)[0] ?? ''
/** In cents. */
const amountOf = (element: Element | undefined, ...path: string[]) =>
  Math.round(Number(textOf(element, ...path)) * 100)

/** Keys are there once, and nothing names one that is not there. */
function* checkKeys(file: Element): Generator<string> {
  const [customers, products] = [
    texts(file, 'MasterFiles', 'Customer', 'CustomerID'),
    texts(file, 'MasterFiles', 'Product', 'ProductCode'),
  ] as const
  const [sales, payments] = [
    all(file, 'SourceDocuments', 'SalesInvoices', 'Invoice'),
    all(file, 'SourceDocuments', 'Payments', 'Payment'),
  ] as const
  const numbers = [
    sales.map(each => textOf(each, 'InvoiceNo')),
    payments.map(each => textOf(each, 'PaymentRefNo')),
  ]
  for (const keys of [customers, products, ...numbers])
    for (const [key, { length }] of [...Map.groupBy(keys, key => key)])
      if (length > 1) yield `${key} is there twice`
  for (const each of [...sales, ...payments]) {
    const customer = textOf(each, 'CustomerID')
    if (!customers.includes(customer)) yield `there is no customer ${customer}`
  }
  for (const product of sales.flatMap(each => texts(each, 'Line', 'ProductCode')))
    if (!products.includes(product)) yield `there is no product ${product}`
}

function* checkSection(file: Element, section: string, kind: 'Invoice' | 'Payment'): Generator<string> {
  const [found] = all(file, 'SourceDocuments', section)
  const documents = all(found, kind)
  let [debit, credit] = [0, 0]
  for (const document of documents) {
    const fault = (what: string) =>
      `${textOf(document, kind === 'Invoice' ? 'InvoiceNo' : 'PaymentRefNo')}: ${what}`
    for (const what of [...checkDocument(document, kind), ...checkTotals(document, kind)]) yield fault(what)
    if (/^[AF]$/.test(textOf(document, 'DocumentStatus', `${kind}Status`))) continue
    debit += sum(all(document, 'Line', 'DebitAmount'))
    credit += sum(all(document, 'Line', 'CreditAmount'))
  }
  if (found === undefined) return
  if (Number(textOf(found, 'NumberOfEntries')) !== documents.length)
    yield `${section}: NumberOfEntries is wrong`
  if (amountOf(found, 'TotalDebit') !== debit) yield `${section}: TotalDebit is not ${debit}`
  if (amountOf(found, 'TotalCredit') !== credit) yield `${section}: TotalCredit is not ${credit}`
}

const sum = (elements: Element[]) => elements.reduce((total, each) => total + amountOf(each), 0)

function* checkDocument(document: Element, kind: 'Invoice' | 'Payment'): Generator<string> {
  const number = textOf(document, kind === 'Invoice' ? 'InvoiceNo' : 'PaymentRefNo')
  const [, code, n] = /^(\S+) .*\/(\d+)$/.exec(number) ?? []
  const day = textOf(document, kind === 'Invoice' ? 'InvoiceDate' : 'TransactionDate')
  const atcud = textOf(document, 'ATCUD')
  if (textOf(document, `${kind}Type`) !== code) yield `its type is not ${code}`
  if (atcud !== '0' && atcud.split('-').at(-1) !== n) yield `its ATCUD is ${atcud}`
  const period = textOf(document, 'Period')
  if (period !== '' && Number(period) !== Number(day.slice(5, 7))) yield `its Period is ${period} on ${day}`
  if (textOf(document, 'Hash') === '0' && textOf(document, 'HashControl') !== '0')
    yield 'its HashControl signs nothing'
  for (const [index, line] of all(document, 'Line').entries()) {
    if (textOf(line, 'LineNumber') !== String(index + 1)) yield `its line ${index + 1} has another number`
    const percent = textOf(line, 'Tax', 'TaxPercentage')
    const isExempt = percent !== '' && Number(percent) === 0
    const given = texts(line, 'TaxExemptionReason').length + texts(line, 'TaxExemptionCode').length
    if (given !== (isExempt ? 2 : 0)) yield `its line of ${percent} % has ${given} of reason and code`
  }
}

function* checkTotals(document: Element, kind: 'Invoice' | 'Payment'): Generator<string> {
  const totals = all(document, 'DocumentTotals')[0]
  const [tax, net, gross] = ['TaxPayable', 'NetTotal', 'GrossTotal'].map(name => amountOf(totals, name)) as [
    number,
    number,
    number,
  ]
  if (net + tax !== gross) yield `${net} and ${tax} are not ${gross}`
  const [currency] = all(totals, 'Currency')
  if (currency !== undefined) {
    const inEuros = Number(textOf(currency, 'CurrencyAmount')) * Number(textOf(currency, 'ExchangeRate'))
    // Amount and tax are converted each for itself, and the rate has six decimals.
    if (Math.abs(inEuros * 100 - gross) > 1.5 + gross / 10_000) yield `${inEuros} are not ${gross} in cents`
  }
  if (amountOf(document, 'WithholdingTax', 'WithholdingTaxAmount') > net)
    yield 'more is withheld than charged'
  if (kind === 'Payment') return
  const isCredit = textOf(document, 'InvoiceType') === 'NC'
  const lines = all(document, 'Line').map(line => {
    const amount = amountOf(line, 'CreditAmount') - amountOf(line, 'DebitAmount')
    return { amount: isCredit ? -amount : amount, percent: Number(textOf(line, 'Tax', 'TaxPercentage')) }
  })
  const sumOfLines = lines.reduce((total, { amount }) => total + amount, 0)
  if (sumOfLines !== net) yield `its lines are ${sumOfLines}, and not ${net}`
  const due = lines.reduce((total, { amount, percent }) => total + (amount * percent) / 100, 0)
  if (Math.abs(due - tax) > lines.length + 1) yield `its lines' tax is ${due}, and not ${tax}`
  if (isCredit && all(document, 'Line', 'References', 'Reference').length !== lines.length)
    yield 'a line names no document'
}
