/** The SAF-T file of each month, with planted differences. A file takes time to create, and its address expires. */

import { relatedTypes } from '../../src/domain/document.ts'
import { letters, type Random } from '../random.ts'
import { type SaftFile, type SaftLine, type SaftRow, writeSaft } from '../saft-file.ts'
import { SandboxError } from '../spoil.ts'
import type { DocumentAccount } from './account.ts'
import { notFound } from './errors.ts'
import {
  chargedBy,
  type IxClient,
  type IxDocument,
  type IxType,
  parseDay,
  printedOf,
  printedTypeOf,
  toCents,
  withheldFrom,
} from './objects.ts'
import type { PdfOptions } from './pdfs.ts'
import type { SaftDifferenceKind } from './saft-differences.ts'

/** Codes of the document types in the file's sales. MOSS documents carry another country's tax and are not in the file. */
const saleCodes: Partial<Record<IxType, string>> = {
  Invoice: 'FT',
  InvoiceReceipt: 'FR',
  SimplifiedInvoice: 'FS',
  // The SAF-T format no longer has a code for cash sales, so they are filed as FR.
  CashInvoice: 'FR',
  CreditNote: 'NC',
  DebitNote: 'ND',
}

function writeSaftOf(account: DocumentAccount, month: string): Buffer {
  const { documents, clients, plantedInSaft } = account
  const lies = new Map(plantedInSaft.map(({ kind, document_id }) => [document_id, kind]))
  const issued = [...documents.values()].filter(document => {
    const { date, status, sequence_number } = document
    const isOfMonth = parseDay(date)?.startsWith(month) === true
    return isOfMonth && sequence_number !== null && status !== 'deleted' && !isCopy(document, documents)
  })
  const [sales, receipts] = [
    issued.filter(({ type }) => type in saleCodes),
    issued.filter(({ type }) => type === 'Receipt'),
  ] as const
  const write = (rows: readonly IxDocument[]) =>
    rows.flatMap(document => spoil(rowOf(document, account), lies.get(document.id)))
  const filed = [...sales, ...receipts]
  const customers = [...new Set(filed.map(({ client }) => client.id))].map(id =>
    customerOf(clients.get(id), id),
  )
  const others = filed
    .filter(({ id }) => lies.get(id) === 'saft_tax_id')
    .map(({ client }) => ({
      ...customerOf(clients.get(client.id), client.id),
      id: `${client.id}-2`,
      taxId: '298765430',
    }))
  const surplus = [...lies].some(([id, kind]) => kind === 'saft_sum' && issued.some(each => each.id === id))
    ? 1
    : 0
  return writeSaft({
    month,
    customers: [...customers, ...others],
    sales: write(sales),
    receipts: write(receipts),
    surplus,
  })
}

/** Whether the document is a second copy whose original is in the file. */
function isCopy({ id, status, type, sequence_number }: IxDocument, documents: DocumentAccount['documents']) {
  if (status !== 'second_copy') return false
  return [...documents.values()].some(
    other => other.id !== id && other.type === type && other.sequence_number === sequence_number,
  )
}

function customerOf(client: IxClient | undefined, id: number): SaftFile['customers'][number] {
  const taxId = client?.fiscal_id?.replace(/^PT/, '') ?? '999999990'
  return { id: String(id), taxId, name: client?.name ?? 'Consumidor final' }
}

function rowOf(document: IxDocument, account: DocumentAccount): SaftRow {
  const { atcud } = printedOf(document)
  const { multicurrency } = document
  const [about] = isAbout(document.type) ? account.relatedTo(document.id) : []
  return {
    number: numberOf(document),
    atcud: atcud ?? '0',
    status: document.status === 'canceled' ? 'A' : 'N',
    date: parseDay(document.date) ?? '',
    customer: String(document.client.id),
    net: document.before_taxes,
    gross: chargedBy(document),
    lines: linesOf(document),
    ...(document.retention !== null && { withheld: withheldFrom(document) }),
    ...(multicurrency && { foreign: { ...multicurrency, amount: multicurrency.total } }),
    ...(about && { about: { number: numberOf(about), date: parseDay(about.date) ?? '' } }),
  }
}

const isAbout = (type: IxType) => (relatedTypes as readonly string[]).includes(type)

/** Returns the number as the file has it, with the type's code, the series and the number. */
function numberOf(document: IxDocument): string {
  const { inverted_sequence_number } = printedOf(document)
  return `${saleCodes[printedTypeOf(document)] ?? 'RG'} ${inverted_sequence_number?.replace(/^\S+ /, '')}`
}

const countries: Record<string, string> = { Portugal: 'PT', Canada: 'CA', Japan: 'JP', Kuwait: 'KW' }

/** Items are rounded separately. The largest item takes the difference to the amount before taxes. */
function linesOf({ items, before_taxes, client }: IxDocument): SaftLine[] {
  const sum = items.reduce((all, { subtotal }) => all + toCents(subtotal), 0)
  const largest = items.toSorted((a, b) => b.subtotal - a.subtotal)[0]
  return items.map(item => {
    const missing = item === largest ? toCents(before_taxes) - sum : 0
    const { name, quantity, subtotal, tax } = item
    return {
      name,
      quantity: Number(quantity),
      net: (toCents(subtotal) + missing) / 100,
      percent: tax.value,
      country: countries[client.country] ?? 'PT',
    }
  })
}

/** Applies a planted difference to a row. The result has zero, one or two rows. */
function spoil(row: SaftRow, kind: SaftDifferenceKind | undefined): SaftRow[] {
  switch (kind) {
    case 'saft_omitted':
      return []
    case 'saft_invented':
      return [row, { ...row, number: 'FT Z/1', atcud: 'JZZZZZZZ-1' }]
    case 'saft_canceled':
      return [{ ...row, status: 'A' }]
    case 'saft_total':
      return [{ ...row, gross: row.gross + 1 }]
    case 'saft_tax_id':
      return [{ ...row, customer: `${row.customer}-2` }]
    case 'saft_date':
      return [{ ...row, date: row.date.endsWith('01') ? row.date.replace(/01$/, '02') : before(row.date) }]
    case 'saft_atcud':
      return [{ ...row, atcud: row.atcud.replace(/^.*-/, 'JXXXXXXX-') }]
    case 'saft_twice':
      return [row, row]
    default:
      return [row]
  }
}

function before(day: string): string {
  return day.replace(/\d\d$/, digits => String(Number(digits) - 1).padStart(2, '0'))
}

export interface Safts {
  /** Returns the path of the month's file with a new secret. Null while the file is being created. */
  ask(year: string, month: string): string | null
  read(month: string, secret: string): Buffer
}

export function createSafts(documents: DocumentAccount, random: Random, options: PdfOptions): Safts {
  const asked = new Map<string, number>()
  const secrets = new Map<string, { month: string; until: number }>()
  return {
    ask(year, number) {
      const month = `${year}-${number.padStart(2, '0')}`
      if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(month))
        throw new SandboxError(422, 'year and month must be a month.')
      const before = asked.get(month) ?? 0
      asked.set(month, before + 1)
      if (before < options.delay) return null
      const secret = letters(random, 40)
      secrets.set(secret, { month, until: performance.now() + options.lifetimeMs })
      return `/saft/${month}/${secret}.xml`
    },
    read(month, secret) {
      const found = secrets.get(secret)
      if (found === undefined || found.month !== month) throw notFound('file')
      if (found.until < performance.now()) throw new SandboxError(403, 'Request has expired.')
      return writeSaftOf(documents, month)
    },
  }
}
