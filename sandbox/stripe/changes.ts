/** What may happen to an invoice, and from which of its statuses. */
import type { StripeInvoice } from './objects.ts'

/** By time, the last three never happen: they are for whoever asks for them. */
export const changeKinds = [
  ...(['create', 'finalize', 'pay', 'void', 'uncollectible', 'delete', 'update'] as const),
  ...(['pay_part', 'credit', 'credit_whole'] as const),
] as const
export type ChangeKind = (typeof changeKinds)[number]

/** Statuses from which a change is allowed. */
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

/** Drafts neither run out nor pile up. */
export function kindFor(chance: number): ChangeKind {
  const shares = [0.3, 0.52, 0.72, 0.76, 0.8, 0.87, 1]
  return changeKinds[shares.findIndex(share => chance < share)] ?? 'update'
}
