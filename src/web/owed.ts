/** What a customer owes, in each currency: the sum, its day, and the invoices, the oldest due first. Pure. */
import type { CustomerBalance } from '../sdk/client.ts'
import { daysBetween } from './invoice-state.ts'

type OpenInvoice = CustomerBalance['invoices'][number]

export interface Owed {
  currency: string
  /** What is to be paid, without invoices whose certified document is credited in full. */
  cents: number
  /** What is in the customer's favour beside it. */
  creditCents: number
  count: number
  /** Days since the oldest due day passed; 0 when none has. */
  daysOverdue: number
  /** The next due day; null when one has passed, or without any. */
  nextDue: string | null
  /** As many as the balance shows. */
  invoices: readonly OpenInvoice[]
}

export function owedOf({ currencies, invoices, day }: CustomerBalance): Owed[] {
  return currencies.map(({ currency, remaining_cents, credit_cents, count, overdue_since }) => {
    const own = invoices.filter(invoice => invoice.currency === currency && invoice.remaining_cents > 0)
    const credited = own.filter(isCredited)
    const owed = own.filter(invoice => !isCredited(invoice))
    const taken = credited.reduce((sum, invoice) => sum + invoice.remaining_cents, 0)
    const isOverdue = overdue_since !== null && owed.some(({ days_overdue }) => days_overdue > 0)
    const oldest = owed.find(({ due_date }) => due_date !== null)?.due_date ?? null
    return {
      currency,
      cents: remaining_cents - taken,
      creditCents: credit_cents - taken,
      count: count - credited.length,
      daysOverdue: isOverdue ? daysBetween(oldest, day) : 0,
      nextDue: isOverdue ? null : oldest,
      invoices: owed,
    }
  })
}

/** Of an open invoice whose certified document takes all back, nothing is asked for. */
function isCredited({ remaining_cents, credit_cents }: OpenInvoice): boolean {
  return credit_cents >= remaining_cents
}
