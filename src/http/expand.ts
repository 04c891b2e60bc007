/** What `expand` makes of an answer, beside the members that are added to it. */
import { dayOf } from '../domain/calendar.ts'
import type { Expansion } from '../domain/expanded.ts'
import { completeExpansions, type PaymentMoment } from '../domain/expansion.ts'
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

const asItIs = { complete: (text: string) => text, variant: '' }

/** `complete` makes the text that is sent of the one that is stored. */
export function completeAnswer(expand: readonly Expansion[] | undefined, page: PageKnowledge) {
  if (expand?.includes('payment') !== true) return asItIs
  const moment = momentOf(page)
  return { complete: (text: string) => completeExpansions(text, moment), variant: variantOf(moment) }
}
