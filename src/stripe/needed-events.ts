/**
 * The events that are asked for, and that a webhook endpoint should send: of invoices, and of customers, whose names and
 * tax ids drafts follow. Stripe takes at most 20 names in one question, and no pattern among them. Left out are
 * `invoice.upcoming`, which is of no invoice yet, and `invoice.will_be_due`, a reminder that changes nothing.
 */
export const neededEvents = [
  'invoice.created',
  'invoice.deleted',
  'invoice.finalization_failed',
  'invoice.finalized',
  'invoice.marked_uncollectible',
  'invoice.overdue',
  'invoice.overpaid',
  'invoice.paid',
  'invoice.payment_action_required',
  'invoice.payment_attempt_required',
  'invoice.payment_failed',
  'invoice.payment_succeeded',
  'invoice.sent',
  'invoice.updated',
  'invoice.voided',
  'customer.updated',
  'customer.deleted',
  'customer.tax_id.created',
  'customer.tax_id.updated',
  'customer.tax_id.deleted',
] as const
