/** The fields that the parameter `expand` adds to an invoice, as the API sends them. */

/** Values of `expand` whose texts the store keeps in columns beside the summary. */
export const briefs = ['document', 'payment'] as const

/** All values of the parameter `expand`. */
export const expansions = [...briefs, 'taxes'] as const
export type Expansion = (typeof expansions)[number]

/** Fields that `expand` adds. A field is absent when the request does not ask for it. */
export interface Expanded {
  /** The certified document. Null until one is linked and was read. */
  document?: DocumentBrief | null
  payment?: PaymentBrief
  /** Taxes by rate, from the certified document or else from the payment platform. Null when neither is known. */
  taxes?: readonly TaxOfRate[] | null
}

export interface DocumentBrief {
  /** Printed number, such as "FR A/123". `number` and `atcud` are null before the document is issued. */
  number: string | null
  /** `type` and `status` are the invoicing system's own words. */
  type: string
  atcud: string | null
  /** `date` and `due_date` are written YYYY-MM-DD. */
  date: string | null
  due_date: string | null
  status: string
  /** Path of the PDF on this service's host. Null while the document is a draft. */
  pdf: string | null
}

export interface PaymentBrief {
  /** Due day, YYYY-MM-DD, in UTC. An invoice without a due day (null) is due at once and never overdue. */
  due_date: string | null
  paid_cents: number
  /** Amount to pay. Never negative, and 0 unless the invoice is open. */
  remaining_cents: number
  /** True when something is to be paid and the due day has passed. */
  overdue: boolean
  /** True when the invoice can be paid on the payment platform's page. */
  payable: boolean
  /** Sum of the certified document's credit notes in force. */
  credited_cents: number
}

/** Tax of one rate. An unknown value is null. */
export interface TaxOfRate {
  rate_percent: number | null
  base_cents: number | null
  tax_cents: number
  /**
   * The payment platform's own word for the reason of the rate, such as `reverse_charge`. Absent when the tax comes from the certified
   * document.
   */
  reason?: string | null
}
