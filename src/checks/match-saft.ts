/** The store's document of each document of a SAF-T file, and what the file's numbers show by themselves. Pure. */
import type { Document } from '../document.ts'
import type { Invoice } from '../invoice.ts'
import type { DatedDocument } from '../store/document-store.ts'
import type { SaftDocument } from './read-saft.ts'

/** A document of the file, with the store's one when there is one. */
export interface Pair {
  filed: SaftDocument
  /** The tax ID of the file's customer; null when the file has no such customer. */
  taxId: string | null
  stored: StoredSide | null
}

export interface StoredSide extends Omit<DatedDocument, 'invoices'> {
  invoice: Invoice | null
  /** Whether no invoice has anything to do with it. */
  isUnlinked: boolean
}

/** A document of the store. */
export interface Stored extends Required<Pick<Document, 'id' | 'type' | 'atcud' | 'series_number'>> {
  /** Whether the file should have it. */
  isExpected: boolean
  /** A `StoredSide` as text, which takes less memory. */
  side: string
}

/** Types that certify no invoice: credit and debit notes. The store does not have them. */
const notCertifying = ['NC', 'ND']

/** The file's codes of types. Others are written in several ways. */
const codes: Partial<Record<Document['type'], string>> = {
  Invoice: 'FT',
  InvoiceReceipt: 'FR',
  SimplifiedInvoice: 'FS',
}

/** The file's certifying documents in its order, each with the store's: by ATCUD, then by series and number. */
export function matchDocuments(
  filed: readonly SaftDocument[],
  stored: Iterable<Stored>,
): Map<SaftDocument, Stored | null> {
  const byId = [...stored].sort((a, b) => a.id - b.id)
  const expectedFirst = byId.toSorted((a, b) => Number(b.isExpected) - Number(a.isExpected))
  const byAtcud = Map.groupBy(byId, ({ atcud }) => bareAtcud(atcud))
  const bySeries = Map.groupBy(expectedFirst, ({ series_number }) => withoutCode(series_number ?? ''))
  const find = ({ atcud, number, type }: SaftDocument) => {
    const [same] = atcud === null ? [] : (byAtcud.get(bareAtcud(atcud)) ?? [])
    const alike = bySeries.get(withoutCode(number)) ?? []
    return same ?? alike.find(each => (codes[each.type] ?? type) === type) ?? null
  }
  const isCertifying = ({ section, type }: SaftDocument) =>
    section === 'SalesInvoices' && !notCertifying.includes(type)
  return new Map(filed.filter(isCertifying).map(each => [each, find(each)]))
}

/** Numbers of a series, as printed such as "FT A", that are missing between two that are there. */
export function* findGaps(
  filed: readonly SaftDocument[],
): Generator<{ series: string; from: number; to: number }> {
  const numbers = filed.flatMap(({ number }) => {
    const [, series, n] = /^(.*)\/(\d{1,15})$/.exec(number) ?? []
    return series === undefined ? [] : [{ series, n: Number(n) }]
  })
  for (const [series, some] of [...Map.groupBy(numbers, ({ series }) => series)].sort(byName)) {
    const inOrder = some.map(({ n }) => n).sort((a, b) => a - b)
    for (const [i, n] of inOrder.entries()) {
      const next = inOrder[i + 1] ?? n
      if (next > n + 1) yield { series, from: n + 1, to: next - 1 }
    }
  }
}

export function findTwice(filed: readonly SaftDocument[]): { number: string; times: number }[] {
  return [...Map.groupBy(filed, ({ number }) => number)]
    .sort(byName)
    .map(([number, some]) => ({ number, times: some.length }))
    .filter(({ times }) => times > 1)
}

function byName([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1
}

/** "A/123" of "FT A/123". */
export function withoutCode(number: string): string {
  return number.replace(/^\S+ /, '')
}

/** Some write it as it is printed, with its name before it. */
export function bareAtcud(atcud: string | null): string | null {
  return atcud?.replace(/^ATCUD:\s*/i, '') ?? null
}
