import type { Expansion } from '../../domain/expanded.ts'
import {
  cents,
  centsOrNull,
  dayOrNull,
  listOrNull,
  numberOrNull,
  refer,
  resource,
  text,
  textOrNull,
} from './schema-parts.ts'

export const printedFields = {
  type: text('Type of the document at the external system, for example `InvoiceReceipt` or `CreditNote`.'),
  status: text('Status of the document at the external system, for example `final` or `settled`.'),
  number: textOrNull('Number as printed, for example `FR A/123`. It is null until it is issued.'),
  date: dayOrNull('Date of the document, YYYY-MM-DD.'),
}

export const atcud = textOrNull("The tax authority's code of the document, for example `ABCD1234-123`.")
export const documentDueDate = dayOrNull('Day on which the document is due, YYYY-MM-DD.')
export const dueDate = dayOrNull(
  'Due day, YYYY-MM-DD. An invoice without a due day has null. It is due at once and never overdue.',
)
export const payable = {
  type: 'boolean',
  description:
    "Whether the invoice can be paid on the payment platform's page. It can when an amount remains to be paid and its certified document is not credited in full.",
}

/** Members that `expand` adds to invoices in lists and in details. */
export const expandedFields = {
  document: {
    anyOf: [refer('DocumentBrief'), { type: 'null' }],
    description:
      'The external document of the invoice, with `expand=document`. It is null until a document is associated and was read.',
  },
  payment: refer('PaymentBrief'),
  taxes: listOrNull(
    'TaxOfRate',
    "Tax base and tax by rate, with `expand=taxes`. They come from the external document if it is in the invoice's currency, else from the payment platform. The field is null when both do not have them.",
  ),
} satisfies Record<Expansion, object>

export const expandedResources = [
  resource('DocumentBrief', 'A short form of the external document of an invoice.', {
    number: printedFields.number,
    type: printedFields.type,
    atcud,
    date: printedFields.date,
    due_date: documentDueDate,
    status: printedFields.status,
    pdf: textOrNull(
      'Path of the PDF of the document on this host. Requests for it use the same Bearer token. It is null while the document is a draft.',
    ),
  }),
  resource('PaymentBrief', 'Amounts of an invoice that are owed and paid, with `expand=payment`.', {
    due_date: dueDate,
    paid_cents: cents('Amount of the invoice that was paid'),
    remaining_cents: cents('Amount to be paid. It is 0 if the invoice is not open, and it is never negative'),
    overdue: {
      type: 'boolean',
      description: 'Whether an amount is to be paid and the due day is before the UTC day of the request.',
    },
    payable,
    credited_cents: cents('Sum of the valid credit notes of the certified document'),
  }),
  resource(
    'TaxOfRate',
    'Tax base and tax of one rate, with `expand=taxes`.',
    {
      rate_percent: numberOrNull('Tax rate in percent. It is null when not known.'),
      base_cents: centsOrNull('Amount before the tax'),
      tax_cents: cents('Tax'),
      reason: textOrNull(
        'Reason of the rate at the payment platform, for example `reverse_charge`. It is absent when the tax comes from the external document.',
      ),
    },
    ['reason'],
  ),
]
