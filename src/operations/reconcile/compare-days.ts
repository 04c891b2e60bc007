/** Compares the day of a document with the days of the invoice and its payments, in Lisbon's time zone. Pure. */
import { addWorkingDays, dayIn } from '../../domain/calendar.ts'
import type { Document } from '../../domain/document.ts'
import type { Invoice } from '../../domain/invoice.ts'
import type { PaymentFacts } from '../../domain/payment.ts'
import type { Finding } from './difference-kinds.ts'

const lisbonDayOf = dayIn('Europe/Lisbon')

/** Under Portuguese law, a document is due within this number of working days after the payment. */
const workingDays = 5

export function findWrongMonth({ issued_at, status }: Invoice, { id, date }: Document): Finding | null {
  if (date === null || status === 'draft') return null
  const day = lisbonDayOf(Date.parse(issued_at))
  if (day.slice(0, 7) === date.slice(0, 7)) return null
  return ['wrong_month', `issued ${day}, and document ${id} is of ${date}`]
}

export function findLate(
  { payments }: Pick<PaymentFacts, 'payments'>,
  { id, date }: Document,
): Finding | null {
  const moments = payments.flatMap(({ amount_cents, paid_at }) =>
    amount_cents > 0 && paid_at !== null ? Date.parse(paid_at) : [],
  )
  if (date === null || moments.length === 0) return null
  const paid = lisbonDayOf(Math.min(...moments))
  const last = addWorkingDays(paid, workingDays)
  return date <= last ? null : ['late', `paid ${paid}, so due by ${last}, and document ${id} is of ${date}`]
}
