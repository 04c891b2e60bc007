/** Changes of invoices, and the statuses from which they are allowed. */
import type { StripeInvoice } from './objects.ts'

/** The last three changes never happen by themselves. A caller has to ask for them. */
export const changeKinds = [
  ...(['create', 'finalize', 'pay', 'void', 'uncollectible', 'delete', 'update'] as const),
  ...(['pay_part', 'credit', 'credit_whole'] as const),
] as const
export type ChangeKind = (typeof changeKinds)[number]

export const changeableFrom: Record<Exclude<ChangeKind, 'create'>, StripeInvoice['status'][]> = {
  finalize: ['draft'],
  pay: ['open', 'uncollectible'],
  void: ['open', 'uncollectible'],
  uncollectible: ['open'],
  delete: ['draft'],
  update: ['draft', 'open'],
  pay_part: ['open', 'uncollectible'],
  credit: ['open', 'paid'],
  credit_whole: ['paid'],
}

export function isListed(status: StripeInvoice['status']): status is 'draft' | 'open' | 'uncollectible' {
  return status === 'draft' || status === 'open' || status === 'uncollectible'
}

/**
 * Chooses a kind of change by a random number from 0 to 1. The shares of the kinds are chosen so that drafts neither run out nor
 * accumulate.
 */
export function kindFor(chance: number): ChangeKind {
  const shares = [0.3, 0.52, 0.72, 0.76, 0.8, 0.87, 1]
  return changeKinds[shares.findIndex(share => chance < share)] ?? 'update'
}
