/** All kinds of differences between the two systems. docs/linking.md has a row for each. Pure. */

interface KindWords {
  meaning: string
  remedy: string
}

/** Kinds of differences, in the order in which a report lists them. */
export const differenceWords = {
  paid_without_document: {
    meaning:
      'Paid, above zero, and no document known to be in force: none, a canceled one, a draft, or a [second copy](#second-copies) alone',
    remedy: 'Create or finalize it; or record `ix_state=ignored`',
  },
  open_without_document: {
    meaning: 'The same for an open invoice',
    remedy: 'Create or finalize it; or record `ix_state=ignored`',
  },
  paid_not_settled: { meaning: 'Paid, and the document is only final', remedy: 'Settle the document' },
  open_settled: {
    meaning:
      'Open at Stripe with something to pay, and the document is settled, or an invoice-receipt or cash invoice',
    remedy: 'Record the payment at Stripe; or replace the document with an invoice',
  },
  open_credited: {
    meaning: 'Open at Stripe with something to pay, and the document is credited in full',
    remedy: 'Issue the credit note at Stripe, or void the invoice; or cancel that at InvoiceXpress',
  },
  several_documents: {
    meaning: 'Several documents in force: one sale is certified twice',
    remedy: 'Cancel all but one, and record its `ix_id`',
  },
  document_on_void: {
    meaning:
      'Void at Stripe, and the document is neither canceled nor credited in full, nor a [second copy](#second-copies) alone',
    remedy: 'Cancel the document, or issue a credit note of all of it',
  },
  total_differs: {
    meaning: "[What the document charges](#what-is-compared) differs from the invoice's total",
    remedy: 'Find out which is right',
  },
  currency_unknown: {
    meaning: "The document is in another currency than the invoice, and has no total in the invoice's",
    remedy: 'Look at the document; give `currency_code` and `rate` when you create the next',
  },
  tax_differs: {
    meaning: 'The totals agree, and the tax does not, in all or at a rate',
    remedy: 'Correct the rate where it is wrong; replace an issued document',
  },
  rounding: {
    meaning: '`--all`: a difference of at most `--tolerance` cents a rate',
    remedy: 'Nothing; it does not count for the exit code',
  },
  credit_note_missing: {
    meaning: "Stripe's credit notes, before and after payment, are above the document's in force",
    remedy: 'Issue the credit note at InvoiceXpress',
  },
  credit_note_unmatched: {
    meaning: "The document's credit notes in force are above Stripe's",
    remedy: 'Issue the credit note at Stripe, or cancel that at InvoiceXpress',
  },
  wrong_month: {
    meaning: "The document's day is in another month than the invoice's: the tax falls into another period",
    remedy: 'Ask your accountant which period is right; date the next on the day of the invoice',
  },
  late: {
    meaning: 'Issued more than five working days after the first payment',
    remedy: 'Make the next in time; tell your accountant of this one',
  },
  simplified_over_limit: {
    meaning: 'A simplified invoice above `SIMPLIFIED_LIMIT`',
    remedy: 'Replace it with an invoice',
  },
  exemption_differs: {
    meaning: "The document's exemption code [contradicts](#what-is-compared) Stripe's reason for no tax",
    remedy: 'Correct the tax settings of the customer or the product; replace the document',
  },
  stuck_creating: {
    meaning: '`creating` for over `LINK_CREATING_TIMEOUT` (without `ix_attempted_at`, since issued)',
    remedy: 'Try again',
  },
  failed: {
    meaning: 'Making the document failed, or the recorded one is gone',
    remedy: 'See the last column',
  },
  claim_contradicted: {
    meaning: 'The recorded document names another invoice, or its client has another tax ID',
    remedy: "Record the invoice's own document, or remove `ix_id`",
  },
  claimed_twice: {
    meaning: 'An invoice issued earlier records the same document',
    remedy: 'Remove `ix_id` from one',
  },
  tax_id_differs: {
    meaning: "The document's client has another tax ID",
    remedy: 'Correct the client; replace an issued document if needed',
  },
  tax_id_one_side: {
    meaning: 'Only one side has a tax ID: the other has none, or 999999990',
    remedy: 'Give the tax ID to the other side; replace an issued document if needed',
  },
  document_of_unknown_invoice: {
    meaning:
      '`--unlinked`: a document in force names an invoice, a payment or a number that no stored invoice has',
    remedy: "Find its origin; a [refused](sync.md#refused-invoices) invoice's may be right",
  },
  document_of_several_invoices: {
    meaning: '`--unlinked`: a document in force names a payment or a number of several invoices',
    remedy: 'Record its `ix_id` on its own invoice',
  },
  document_without_invoice: {
    meaning: '`--unlinked`: a document in force names no invoice',
    remedy: 'Nothing, if it never came from Stripe',
  },
} as const satisfies Record<string, KindWords>

export const differenceKinds = Object.keys(differenceWords) as (keyof typeof differenceWords)[]

/** Kinds of differences that only a comparison with a SAF-T file finds. */
export const saftKinds = [
  'not_in_store',
  'not_in_saft',
  'paid_not_in_saft',
  'canceled_in_one',
  'number_differs',
  'date_differs',
  'number_twice',
  'numbers_missing',
  'saft_totals_differ',
] as const
export type DifferenceKind = (typeof differenceKinds)[number] | (typeof saftKinds)[number]

export type Finding = readonly [kind: DifferenceKind, detail: string]

export interface Limits {
  /** The difference per tax rate that counts as rounding, in cents or other smallest units. */
  tolerance: number
  /** The highest amount of a simplified invoice, in euros. */
  simplifiedLimit: number
}
export const defaultLimits: Limits = { tolerance: 1, simplifiedLimit: 100 }
