/** An expanded answer depends on more than the records: on the day, and on whether customers can pay on a page. */
import { dayOf } from '../domain/calendar.ts'
import type { PaymentMoment } from '../domain/expansion.ts'
import type { PaymentPlatform } from '../sources/source.ts'

export interface PageKnowledge {
  payments: PaymentPlatform | null
  /** Whether answers may name the payment platform's page. */
  pay: boolean
}

export function momentOf({ payments, pay }: PageKnowledge): PaymentMoment {
  return { day: dayOf(Date.now()), hasPage: pay && payments !== null }
}

/** Text for the ETag of an answer. It names everything that the answer depends on besides the records. */
export function variantOf({ day, hasPage }: PaymentMoment): string {
  return `${day}${hasPage ? '-page' : ''}`
}
