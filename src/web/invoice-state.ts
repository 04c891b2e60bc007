/** Chooses the one state that an invoice's row shows, the most important one for the customer. Pure. */
import { dayMs } from '../domain/calendar.ts'
import type { Invoice, PaymentBrief } from '../sdk/client.ts'

export type InvoiceState =
  | { kind: 'draft' | 'void' | 'credited' | 'uncollectible' | 'paid' | 'nothingToPay' }
  /** `due` is YYYY-MM-DD. Null without a due day. */
  | { kind: 'toPay'; due: string | null }
  | { kind: 'overdue'; days: number }

type Facts = Pick<Invoice, 'status' | 'total_cents'> & { payment?: PaymentBrief }

/** `today` is YYYY-MM-DD in UTC. */
export function stateOf({ status, total_cents, payment }: Facts, today: string): InvoiceState {
  if (status === 'draft' || status === 'void') return { kind: status }
  if (payment !== undefined && total_cents > 0 && payment.credited_cents >= total_cents)
    return { kind: 'credited' }
  if (status !== 'open') return { kind: status }
  if (payment === undefined) return { kind: 'toPay', due: null }
  if (payment.remaining_cents <= 0) return { kind: 'nothingToPay' }
  const days = daysBetween(payment.due_date, today)
  return days > 0 ? { kind: 'overdue', days } : { kind: 'toPay', due: payment.due_date }
}

/** Number of whole days between two days. 0 when `from` is null. */
export function daysBetween(from: string | null, to: string): number {
  return from === null ? 0 : Math.round((Date.parse(to) - Date.parse(from)) / dayMs)
}

/** Returns the amount still to pay when it differs from the total. Otherwise null. */
export function remainderOf({ status, total_cents, payment }: Facts): number | null {
  if (status !== 'open' || payment === undefined) return null
  const { remaining_cents } = payment
  return remaining_cents > 0 && remaining_cents !== total_cents ? remaining_cents : null
}
