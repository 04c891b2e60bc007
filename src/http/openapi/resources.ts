/** Schemas of the bodies of answers and of their fields, as the OpenAPI document describes them. */
import { openInvoicesShown } from '../../domain/balance.ts'
import { changeKinds } from '../../domain/change.ts'
import { expansions } from '../../domain/expanded.ts'
import { customerIdPattern, invoiceIdPattern, invoiceStatuses, syncStates } from '../../domain/invoice.ts'
import { maxPageSize } from '../../domain/list-query.ts'
import {
  atcud,
  documentDueDate,
  dueDate,
  expandedFields,
  expandedResources,
  payable,
  printedFields,
} from './expanded-resources.ts'
import { operationResources } from './operation-resources.ts'
import {
  cents,
  centsOrNull,
  currency,
  dayOrNull,
  listOf,
  listOrNull,
  moment,
  number,
  numberOrNull,
  oneOf,
  refer,
  resource,
  text,
  textOrNull,
  whole,
  wholeOrNull,
} from './schema-parts.ts'
import { statementResources } from './statement-resources.ts'

const fields = {
  id: text("The payment platform's invoice ID.", { pattern: invoiceIdPattern }),
  number: textOrNull('Invoice number; null until the invoice is finalized.'),
  display_name: text('Display name of the customer or company.'),
  customer_name: textOrNull('Customer name.'),
  customer_id: text('Customer ID.', { pattern: customerIdPattern }),
  customer_email: textOrNull('E-mail address of the customer.'),
  company_name: textOrNull('Company name.'),
  customer_tax_id: textOrNull('Tax identifier of the customer.'),
  issued_at: text('Time of issue, UTC with milliseconds.', moment),
  ix_created_at: textOrNull(
    'Creation time of the external document, UTC with milliseconds; null when not known.',
    moment,
  ),
  subtotal_cents: cents('Subtotal before discounts and exclusive tax'),
  discount_cents: cents('Sum of the discounts'),
  tax_cents: cents('Sum of the taxes; where prices include tax, a part of the subtotal'),
  tax_percent: numberOrNull('Tax rate in percent; null when no single rate describes the invoice.'),
  total_cents: cents('Total; negative when it is in favour of the customer'),
  currency,
  status: refer('InvoiceStatus'),
  ix_sync_state: refer('SyncState'),
  ix_id: wholeOrNull('ID of the external invoicing document; null until one is associated.'),
  ix_status: textOrNull("The external document's own status, for example `draft` or `settled`."),
}

const { customer_name, customer_email, company_name, customer_tax_id, ix_created_at, ...detailFields } =
  fields

const sums = {
  status: refer('InvoiceStatus'),
  count: whole('Number of invoices.', { minimum: 1 }),
  total_cents: cents('Sum of `total_cents`, exact also beyond 2^53'),
}

const documentFields = {
  id: whole('ID at the external invoicing system.', { minimum: 1 }),
  ...printedFields,
  gross_cents: centsOrNull('Amount before and with taxes, before any retention: what the document charges'),
  total_cents: centsOrNull('Amount to be paid: the gross amount less the retention'),
  in_invoice_currency: {
    anyOf: [refer('ConvertedTotal'), { type: 'null' }],
    description:
      "The total in the invoice's currency; null when the document has none beside its own currency.",
  },
}

const openOrder =
  'The oldest due day first; an invoice without one comes after those that are overdue, and before the others.'

export const components = [
  resource(
    'InvoiceSummary',
    'An invoice as it stands in a list.',
    { ...fields, ...expandedFields },
    expansions,
  ),
  resource(
    'InvoiceDetail',
    'One invoice whole.',
    {
      ...detailFields,
      lines: listOf('LineItem', 'All the line items, or none.'),
      lines_source: oneOf(
        ['payments', 'none'],
        '`payments` when the lines came from the payment platform, `none` when they are unavailable.',
      ),
      downloads: refer('Downloads'),
      ...expandedFields,
    },
    expansions,
  ),
  ...expandedResources,
  resource('InvoiceList', 'One page of a list.', {
    invoices: listOf('InvoiceSummary', 'The page: newest `issued_at` first, then highest `id`.', {
      maxItems: maxPageSize,
    }),
    page: whole('The page returned.', { minimum: 1 }),
    page_size: whole('Records per page used.', { minimum: 1, maximum: maxPageSize }),
    total: whole('All the records that match.', { minimum: 0 }),
    total_pages: whole('Pages in all; 0 when nothing matches.', { minimum: 0 }),
    source: oneOf(['synchronized_records'], 'Source of the data.'),
  }),
  resource('LineItem', 'One line of an invoice.', {
    id: text("The payment platform's line ID."),
    description: textOrNull('Description of the item.'),
    quantity: wholeOrNull('Whole units; null when the line has none.'),
    subtotal_cents: cents('Before discounts and exclusive tax'),
    discount_cents: cents("Discounts, the line's share of the invoice's discounts included"),
    discount_percent: number('Discount in percent of the subtotal.'),
    unit_amount_cents: wholeOrNull(
      "Price of one unit, in the currency's smallest unit; null when it has none.",
    ),
    amount_cents: cents('Subtotal less discount'),
    currency,
  }),
  resource('Downloads', 'Paths on this host; they take the same Bearer token.', {
    ix: textOrNull("Path of the external document's PDF; null until one is associated."),
    payments: text("Path of the payment platform's PDF."),
  }),
  resource('InvoiceDocument', 'The external document of an invoice.', {
    ...documentFields,
    series: textOrNull('Series, for example `A`; null until it is issued.'),
    atcud,
    due_date: documentDueDate,
    before_tax_cents: centsOrNull('Total before taxes'),
    tax_cents: centsOrNull('Taxes'),
    retention_percent: numberOrNull(
      'Tax that the client withholds, in percent of the total before taxes; null for none.',
    ),
    retention_cents: centsOrNull('Tax that the client withholds'),
    currency: {
      ...currency,
      description: "The document's own currency, which its amounts are in; the invoice may have another.",
    },
    taxes: listOrNull(
      'DocumentTax',
      'Taxes by rate, the highest first, one that is not known last; null when not known.',
    ),
    exemption_code: textOrNull('Reason for which no tax is due, for example `M07`.'),
    buyer_name: textOrNull('Name of the buyer as printed.'),
    buyer_tax_id: textOrNull('Tax ID of the buyer as printed; null where the document does not tell it.'),
    multibanco: {
      ...refer('Multibanco'),
      description: 'What is typed at a Portuguese cash machine to pay; null when it cannot be paid so.',
    },
    qr_path: textOrNull("Path of the QR code's image on this host; null when there is none."),
    related: listOrNull(
      'RelatedDocument',
      'Credit notes, debit notes and receipts; null until they were read.',
    ),
  }),
  resource('Multibanco', 'What is typed at a Portuguese cash machine to pay.', {
    entity: text('Five digits.', { pattern: '^[0-9]{5}$' }),
    reference: text('Nine digits.', { pattern: '^[0-9]{9}$' }),
  }),
  resource('DocumentTax', 'The tax of a rate.', {
    rate_percent: numberOrNull('Tax rate in percent; null when not known.'),
    base_cents: cents('Amount before the tax'),
    tax_cents: cents('Tax'),
  }),
  resource('ConvertedTotal', "A document's total in the currency of its invoice.", {
    currency,
    total_cents: centsOrNull('Total in this currency'),
    rate: numberOrNull("How many of this currency one of the document's is worth; null when not known."),
  }),
  resource('RelatedDocument', 'A credit note, debit note or receipt about a document.', documentFields),
  resource('PaymentPage', 'The page where an invoice can be paid.', {
    url: text('Address of the page; it holds a secret.', { format: 'uri' }),
  }),
  resource('ChangeList', 'Changes after a cursor.', {
    changes: listOf('Change', 'In the order of their commits.'),
    next: text('Value of `after` for the next request.'),
  }),
  resource('Change', 'An invoice that changed: retrieve it again.', {
    cursor: text('Place behind this change, in the feed that it was read from.'),
    customer_id: fields.customer_id,
    invoice_id: fields.id,
    kind: oneOf(
      changeKinds,
      "Kind of the change; `document`: only the external document's part of the invoice changed.",
    ),
    version: whole("The customer's version with this change.", { minimum: 1 }),
    at: text('Time at which it was stored, UTC with milliseconds.', moment),
  }),
  resource('CustomerSummary', "All of a customer's sums.", {
    currencies: listOf('CurrencySummary', 'In the order of their codes.'),
  }),
  resource('CurrencySummary', 'The sums of a currency.', {
    currency,
    remaining_cents: cents('What is to be paid of open invoices, exact also beyond 2^53'),
    credited_cents: cents("Sum of the certified documents' credit notes in force of open invoices"),
    statuses: listOf('StatusSum', 'Statuses that have an invoice.'),
    months: listOf('MonthSum', 'Months and statuses that have an invoice, the earliest first.'),
  }),
  resource('StatusSum', 'The sum of a status.', sums),
  resource('MonthSum', 'The sum of a status in a month.', {
    month: text('UTC month of `issued_at`.', { pattern: '^\\d{4}-\\d{2}$' }),
    ...sums,
  }),
  resource('CustomerBalance', 'What a customer has to pay.', {
    day: text('The UTC day by which days overdue are counted, YYYY-MM-DD.', { format: 'date' }),
    currencies: listOf('CurrencyBalance', 'Currencies of open invoices, in the order of their codes.'),
    invoices: listOf('OpenInvoice', openOrder, { maxItems: openInvoicesShown }),
    more: whole('Number of open invoices beside these.', { minimum: 0 }),
  }),
  resource('CurrencyBalance', 'What is to be paid in a currency. Sums are exact also beyond 2^53.', {
    currency,
    remaining_cents: cents('What remains to be paid of open invoices, with nothing taken off it'),
    count: whole('Number of invoices of which something is to be paid.', { minimum: 0 }),
    overdue_cents: cents('The part of it whose due day has passed'),
    overdue_count: whole('Number of invoices that are overdue.', { minimum: 0 }),
    overdue_since: dayOrNull('The oldest due day that has passed, YYYY-MM-DD; null when none has.'),
    aging: refer('Aging'),
    credit_cents: cents("What open invoices leave in the customer's favour; never taken off what remains"),
    credit_count: whole("Number of open invoices in the customer's favour.", { minimum: 0 }),
  }),
  resource('Aging', 'What remains to be paid, by days overdue.', {
    not_overdue_cents: cents('Due later, today, or at once without a due day'),
    overdue_1_30_cents: cents('Overdue for 1 to 30 days'),
    overdue_31_60_cents: cents('Overdue for 31 to 60 days'),
    overdue_61_90_cents: cents('Overdue for 61 to 90 days'),
    overdue_over_90_cents: cents('Overdue for over 90 days'),
  }),
  resource('OpenInvoice', 'An open invoice and what remains of it.', {
    ...{ id: fields.id, number: fields.number, issued_at: fields.issued_at, currency },
    total_cents: fields.total_cents,
    document_number: textOrNull('Number as printed on its certified document; null without one.'),
    paid_cents: cents('What was paid of it'),
    remaining_cents: cents("What is to be paid; 0 for an invoice in the customer's favour"),
    credit_cents: cents("What it leaves in the customer's favour"),
    due_date: dueDate,
    days_overdue: whole('Days since the due day; 0 until it has passed.', { minimum: 0 }),
    can_be_paid: payable,
  }),
  ...statementResources,
  { $id: 'InvoiceStatus', ...oneOf(invoiceStatuses, "The payment platform's invoice status.") },
  { $id: 'Expansion', ...oneOf(expansions, 'A member that `expand` adds to an invoice.') },
  { $id: 'SyncState', ...oneOf(syncStates, "Synchronization state of the invoice's external document.") },
  ...operationResources,
]
