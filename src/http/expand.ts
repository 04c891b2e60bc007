/** What an expanded answer depends on beside the records: the day, and whether customers can pay on a page. */
import { dayOf } from '../domain/calendar.ts'
import type { PaymentMoment } from '../domain/expansion.ts'
import type { PaymentPlatform } from '../sources/source.ts'

export interface PageKnowledge {
  payments: PaymentPlatform | null
  /** Whether the payment platform's page is named. */
  pay: boolean
}

/** The moment of a request. */
export function momentOf({ payments, pay }: PageKnowledge): PaymentMoment {
  return { day: dayOf(Date.now()), hasPage: pay && payments !== null }
}

/** Names what an answer depends on beside the records, for its ETag. */
export function variantOf({ day, hasPage }: PaymentMoment): string {
  return `${day}${hasPage ? '-page' : ''}`
}
