/** All kinds of differences between the two systems. docs/linking.md has a row for each. Pure. */

interface KindWords {
  meaning: string
  remedy: string
}

/** Kinds of differences, in the order in which a report lists them. */
export const differenceWords = {
  paid_without_document: {
    meaning:
      'The invoice is paid and above zero, and it has no valid document. The document is missing, canceled, a draft, or only a [second copy](#second-copies).',
    remedy:
      'Create or finalize the document. If the invoice needs none, set `ix_state=ignored` in its metadata.',
  },
  open_without_document: {
    meaning: 'The invoice is open and above zero, and it has no valid document.',
    remedy:
      'Create or finalize the document. If the invoice needs none, set `ix_state=ignored` in its metadata.',
  },
  paid_not_settled: {
    meaning: 'The invoice is paid, but the document is final and not settled.',
    remedy: 'Settle the document.',
  },
  open_settled: {
    meaning:
      'The invoice is open at Stripe with an amount to pay, but the document is settled, or is an invoice-receipt or cash invoice.',
    remedy: 'Record the payment at Stripe, or replace the document with an invoice.',
  },
  open_credited: {
    meaning: 'The invoice is open at Stripe with an amount to pay, but the document is credited in full.',
    remedy:
      'If the credit is right, issue the credit note at Stripe or void the invoice. If it is wrong, cancel the credit note at InvoiceXpress.',
  },
  several_documents: {
    meaning: 'The invoice has several valid documents, so one sale is certified more than once.',
    remedy: 'Cancel all documents but one, and set `ix_id` in the metadata of the invoice to that one.',
  },
  document_on_void: {
    meaning:
      'The invoice is void at Stripe, but the document is not canceled, not credited in full, and not only a [second copy](#second-copies).',
    remedy: 'Cancel the document, or issue a credit note for its full amount.',
  },
  total_differs: {
    meaning: "[The amount that the document charges](#what-is-compared) differs from the invoice's total.",
    remedy: 'Find out which amount is right, and correct the other.',
  },
  currency_unknown: {
    meaning:
      "The document is in another currency than the invoice, and has no total in the invoice's currency.",
    remedy:
      'Check the amount of the document. For the next documents, send `currency_code` and `rate` to InvoiceXpress.',
  },
  tax_differs: {
    meaning: 'The totals are equal, but the tax differs, in total or at one rate.',
    remedy:
      'Correct the tax rate in the system where it is wrong. Replace the document if it is already issued.',
  },
  rounding: {
    meaning: 'The tax differs by at most `--tolerance` cents per rate. Only `--all` lists it.',
    remedy: 'Nothing. It does not change the exit code.',
  },
  credit_note_missing: {
    meaning:
      "Stripe's credit notes, before and after payment, have a higher sum than the document's valid credit notes.",
    remedy: 'Issue the missing credit note at InvoiceXpress.',
  },
  credit_note_unmatched: {
    meaning: "The document's valid credit notes have a higher sum than Stripe's credit notes.",
    remedy: 'Issue the missing credit note at Stripe, or cancel the credit note at InvoiceXpress.',
  },
  wrong_month: {
    meaning: 'The document is dated in another month than the invoice, so the tax is in another period.',
    remedy: 'Ask your accountant which period is right. Give the next documents the date of the invoice.',
  },
  late: {
    meaning: 'The document was issued more than five working days after the first payment.',
    remedy: 'Tell your accountant about this document. Issue the next documents in time.',
  },
  simplified_over_limit: {
    meaning: 'The document is a simplified invoice, and its amount is above `SIMPLIFIED_LIMIT`.',
    remedy: 'Replace the document with an invoice.',
  },
  exemption_differs: {
    meaning: "The document's exemption code [contradicts](#what-is-compared) Stripe's reason for no tax.",
    remedy: 'Correct the tax settings of the customer or the product, and replace the document.',
  },
  stuck_creating: {
    meaning:
      'The document is in the state `creating` for longer than `LINK_CREATING_TIMEOUT`. The time counts from `ix_attempted_at`, or from the issue of the invoice.',
    remedy: 'Create the document again.',
  },
  failed: {
    meaning: 'The creation of the document failed, or the document in the metadata does not exist any more.',
    remedy: 'Read the reason in the last column of the row.',
  },
  claim_contradicted: {
    meaning: 'The document in the metadata names another invoice, or its client has another tax ID.',
    remedy: "Set `ix_id` in the metadata to the invoice's own document, or remove it.",
  },
  claimed_twice: {
    meaning: 'An invoice that was issued earlier names the same document in its metadata.',
    remedy: 'Remove `ix_id` from the metadata of one of the two invoices.',
  },
  tax_id_differs: {
    meaning: "The document's client has another tax ID than the customer at Stripe.",
    remedy: 'Correct the wrong tax ID. If needed, replace the issued document.',
  },
  tax_id_one_side: {
    meaning: 'Only one side has a tax ID. The other side has none, or has 999999990.',
    remedy: 'Add the tax ID on the other side. If needed, replace the issued document.',
  },
  document_of_unknown_invoice: {
    meaning:
      'A valid document names an invoice, a payment or a number that no stored invoice has. Only `--unlinked` lists it.',
    remedy:
      'Find out for which sale the document was made. It may be right if its invoice is [refused](sync.md#refused-invoices).',
  },
  document_of_several_invoices: {
    meaning:
      'A valid document names a payment or a number that several invoices have. Only `--unlinked` lists it.',
    remedy: 'Set `ix_id` in the metadata of the right invoice to this document.',
  },
  document_without_invoice: {
    meaning: 'A valid document names no invoice. Only `--unlinked` lists it.',
    remedy: 'Nothing, if the sale was not made through Stripe.',
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
