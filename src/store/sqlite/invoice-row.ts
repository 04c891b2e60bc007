/** An invoice as its tables have it: texts and numbers alone, all that can be made of it without the database. */
import type { Claim } from '../../document.ts'
import { documentColumns } from '../../document-json.ts'
import type { InvoiceKey, InvoiceRecord } from '../../invoice.ts'
import { serializeLines, serializeSummary } from '../../invoice-json.ts'
import { type SearchText, searchText } from '../read-model/search.ts'

export interface InvoiceRow extends InvoiceKey, SearchText {
  /** In milliseconds. */
  issued_at: number
  status: string
  ix_status: string | null
  currency: string
  total_cents: number
  ix_id: number | null
  summary: string
  /** Null when they are not known. */
  lines: string | null
  claim: Claim | undefined
  document: string | null
  credited_cents: number
}

export function toRow({ invoice, lines, claim, document = null }: InvoiceRecord): InvoiceRow {
  const { customer_id, id, status, ix_status, currency, total_cents, ix_id } = invoice
  return {
    customer_id,
    id,
    issued_at: Date.parse(invoice.issued_at),
    status,
    ix_status,
    currency,
    total_cents,
    ix_id,
    ...searchText(invoice, document),
    summary: serializeSummary(invoice),
    lines: lines === null ? null : serializeLines(lines),
    claim,
    ...documentColumns(document),
  }
}
