/** Computes what a customer owes, by currency: the sum, its due day, and the open invoices, earliest due first. Pure. */
import type { CustomerBalance } from '../sdk/client.ts'
import { daysBetween } from './invoice-state.ts'

type OpenInvoice = CustomerBalance['invoices'][number]

export interface Owed {
  currency: string
  /** Amount to pay. Invoices whose certified document is credited in full do not count. */
  cents: number
  /** Credit in the customer's favour. */
  creditCents: number
  count: number
  /** Days since the earliest due day passed. 0 when no due day has passed. */
  daysOverdue: number
  /** The next due day. Null when one has passed, or when no invoice has a due day. */
  nextDue: string | null
  /** The open invoices that the balance lists. The balance limits their number. */
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

/** Whether credit notes cover the whole open amount. Such an invoice asks for no payment. */
function isCredited({ remaining_cents, credit_cents }: OpenInvoice): boolean {
  return credit_cents >= remaining_cents
}
