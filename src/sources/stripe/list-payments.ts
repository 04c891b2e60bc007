/** Lists all payments of an invoice. Fails rather than return only some of the payments. */
import { UnfitRecord } from '../source.ts'
import { type PaymentItem, partPageShape, paymentShape, readAs } from './invoice-shape.ts'

/** Maximum number of pages of an invoice's payments. A list with more pages repeats itself. */
const maxPages = 100

interface PaymentPage {
  payments: readonly PaymentItem[]
  has_more: boolean
}

export function readPaymentPage(answer: unknown): PaymentPage {
  const { data, has_more } = readAs(partPageShape, answer, 'a list of payments')
  return { payments: data.map(each => readAs(paymentShape, each, 'a payment')), has_more }
}

/** Reads page after page. `list` gets the id of the last payment before the page. */
export async function listPayments(list: (after: string | undefined) => Promise<PaymentPage>) {
  const all = new Map<string, PaymentItem>()
  for (let count = 0; count < maxPages; count++) {
    const { payments, has_more } = await list([...all.keys()].at(-1))
    for (const payment of payments) {
      if (all.has(payment.id)) throw unfit()
      all.set(payment.id, payment)
    }
    if (!has_more) return [...all.values()]
    if (payments.length === 0) break
  }
  throw unfit()
}

function unfit(): UnfitRecord {
  return new UnfitRecord('Stripe sent payments that do not fit')
}
