/** The SAF-T file of each month, which takes time to make, at addresses that expire; and its planted differences. */
import { letters, type Random } from '../random.ts'
import { rates, type SaftFile, type SaftRow, writeSaft } from '../saft-file.ts'
import { SandboxError } from '../spoil.ts'
import type { DocumentAccount } from './account.ts'
import { notFound } from './errors.ts'
import { codeOf, type IxClient, type IxDocument, type IxType, parseDay, printedOf } from './objects.ts'
import type { PdfOptions } from './pdfs.ts'
import type { SaftDifferenceKind } from './saft-differences.ts'

const saleCodes: Partial<Record<IxType, string>> = {
  Invoice: 'FT',
  InvoiceReceipt: 'FR',
  SimplifiedInvoice: 'FS',
  // The file knows no codes for these.
  VatMossInvoice: 'FT',
  CashInvoice: 'FR',
  CreditNote: 'NC',
  DebitNote: 'ND',
}

/** The file of a month, with the differences that were planted in it. */
function writeSaftOf({ documents, clients, plantedInSaft }: DocumentAccount, month: string): Buffer {
  const lies = new Map(plantedInSaft.map(({ kind, document_id }) => [document_id, kind]))
  const issued = [...documents.values()].filter(({ date, status, sequence_number }) => {
    const isOfMonth = parseDay(date)?.startsWith(month) === true
    return isOfMonth && sequence_number !== null && status !== 'draft' && status !== 'deleted'
  })
  const rowsOf = (isSale: boolean) =>
    issued
      .filter(({ type }) => isSale === type in saleCodes)
      .flatMap(document => spoil(rowOf(document), lies.get(document.id)))
  const customers = [...new Set(issued.map(({ client }) => client.id))].map(id =>
    customerOf(clients.get(id), id),
  )
  const others = issued
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
    sales: rowsOf(true),
    receipts: rowsOf(false),
    surplus,
  })
}

function customerOf(client: IxClient | undefined, id: number): SaftFile['customers'][number] {
  const taxId = client?.fiscal_id?.replace(/^PT/, '') ?? '999999990'
  return { id: String(id), taxId, name: client?.name ?? 'Consumidor final' }
}

function rowOf(document: IxDocument): SaftRow {
  const { inverted_sequence_number, atcud } = printedOf(document)
  const code = codeOf(document)
  const rate = rates[code] ?? 1
  return {
    number: `${saleCodes[document.type] ?? 'RG'} ${inverted_sequence_number}`,
    atcud: atcud ?? '0',
    status: document.status === 'canceled' ? 'A' : 'N',
    date: parseDay(document.date) ?? '',
    customer: String(document.client.id),
    net: document.before_taxes * rate,
    gross: document.total * rate,
    ...(code !== 'eur' && { foreign: { code, amount: document.total } }),
  }
}

/** The row as the file has it: none, one or two. */
function spoil(row: SaftRow, kind: SaftDifferenceKind | undefined): SaftRow[] {
  switch (kind) {
    case 'saft_omitted':
      return []
    case 'saft_invented':
      return [row, { ...row, number: 'FT Z/1', atcud: 'JZZZZZZZ-1' }]
    case 'saft_canceled':
      return [{ ...row, status: 'A' }]
    case 'saft_total':
      return [{ ...row, gross: row.gross + 0.01 }]
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
  /** The path of the month's file with a new secret; null while it is being made. */
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
