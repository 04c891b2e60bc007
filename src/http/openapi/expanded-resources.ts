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
  type: text("The external system's own word, for example `InvoiceReceipt` or `CreditNote`."),
  status: text("The external system's own word, for example `final` or `settled`."),
  number: textOrNull('Number as printed, for example `FR A/123`; null until it is issued.'),
  date: dayOrNull('Day that it carries, YYYY-MM-DD.'),
}

export const atcud = textOrNull("The tax authority's code of the document, for example `ABCD1234-123`.")
export const documentDueDate = dayOrNull('Day on which it is due, YYYY-MM-DD.')
export const dueDate = dayOrNull('Due day, YYYY-MM-DD; null without one: due at once, and never overdue.')
export const payable = {
  type: 'boolean',
  description:
    "Whether it can be paid on the payment platform's page: something is to be paid, and its certified document is not credited in full.",
}

/** Members that `expand` adds to invoices in lists and in details. */
export const expandedFields = {
  document: {
    anyOf: [refer('DocumentBrief'), { type: 'null' }],
    description: 'With `expand=document`: the external document; null until one is associated and was read.',
  },
  payment: refer('PaymentBrief'),
  taxes: listOrNull(
    'TaxOfRate',
    "With `expand=taxes`: tax base and tax by rate. They are the external document's where it is in the invoice's currency, else the payment platform's; null where neither tells them.",
  ),
} satisfies Record<Expansion, object>

export const expandedResources = [
  resource('DocumentBrief', 'The external document of an invoice in short.', {
    number: printedFields.number,
    type: printedFields.type,
    atcud,
    date: printedFields.date,
    due_date: documentDueDate,
    status: printedFields.status,
    pdf: textOrNull('Path of its PDF on this host, for the same Bearer token; null while it is a draft.'),
  }),
  resource('PaymentBrief', 'With `expand=payment`: what is owed on an invoice, and what was paid.', {
    due_date: dueDate,
    paid_cents: cents('What was paid of it'),
    remaining_cents: cents('What is to be paid: of an open invoice alone, and never negative'),
    overdue: {
      type: 'boolean',
      description: 'Whether something is to be paid, and the due day was before the UTC day of the request.',
    },
    payable,
    credited_cents: cents("Sum of the certified document's credit notes in force"),
  }),
  resource(
    'TaxOfRate',
    'With `expand=taxes`: the tax of a rate.',
    {
      rate_percent: numberOrNull('Tax rate in percent; null when not known.'),
      base_cents: centsOrNull('Amount before the tax; null when not known'),
      tax_cents: cents('Tax'),
      reason: textOrNull(
        "The payment platform's own word for the reason of the rate, for example `reverse_charge`. Absent where the tax is the external document's.",
      ),
    },
    ['reason'],
  ),
]
