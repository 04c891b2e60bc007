/** The domain: the members that `expand` adds to an invoice, as they are sent. */

/** What `expand` adds that stands beside the summary in columns of its own. */
export const briefs = ['document', 'payment'] as const

/** What `expand` adds to an invoice of a list and to a detail. */
export const expansions = [...briefs, 'taxes'] as const
export type Expansion = (typeof expansions)[number]

/** Absent unless `expand` asks for it. */
export interface Expanded {
  /** Null until a certified document is associated and was read. */
  document?: DocumentBrief | null
  payment?: PaymentBrief
  /** By rate, as certified, else as the payment platform has them; null when neither is known. */
  taxes?: readonly TaxOfRate[] | null
}

/** The certified document in short. */
export interface DocumentBrief {
  /** As printed, such as "FR A/123"; null before it is issued, and so is the next but one. */
  number: string | null
  /** The invoicing system's own word, as the status. */
  type: string
  atcud: string | null
  /** YYYY-MM-DD, as the next. */
  date: string | null
  due_date: string | null
  status: string
  /** Path of its PDF on the service's host; null while it is a draft. */
  pdf: string | null
}

/** What is owed on an invoice and what was paid. */
export interface PaymentBrief {
  /** YYYY-MM-DD, in UTC; null without one: then it is due at once, and never overdue. */
  due_date: string | null
  paid_cents: number
  /** What is to be paid: of an open invoice alone, and never negative. */
  remaining_cents: number
  /** Whether something is to be paid and the due day has passed. */
  overdue: boolean
  /** Whether it can be paid on the payment platform's page. */
  payable: boolean
  /** Sum of the certified document's credit notes in force. */
  credited_cents: number
}

/** The tax of a rate. A field that is not known is null. */
export interface TaxOfRate {
  rate_percent: number | null
  base_cents: number | null
  tax_cents: number
  /** The payment platform's own word for the reason of the rate, such as `reverse_charge`. Absent where the tax is the document's. */
  reason?: string | null
}
