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
  number: textOrNull('Invoice number. It is null until the invoice is finalized.'),
  display_name: text('Display name of the customer or company.'),
  customer_name: textOrNull('Customer name.'),
  customer_id: text('Customer ID.', { pattern: customerIdPattern }),
  customer_email: textOrNull('E-mail address of the customer.'),
  company_name: textOrNull('Company name.'),
  customer_tax_id: textOrNull('Tax identifier of the customer.'),
  issued_at: text('Time at which the invoice was issued, in UTC with milliseconds.', moment),
  ix_created_at: textOrNull(
    'Time at which the external document was created, in UTC with milliseconds. It is null when it is not known.',
    moment,
  ),
  subtotal_cents: cents('Subtotal before discounts and exclusive tax'),
  discount_cents: cents('Sum of the discounts'),
  tax_cents: cents('Sum of the taxes. If prices include tax, it is a part of the subtotal'),
  tax_percent: numberOrNull('Tax rate in percent. It is null when no single rate describes the invoice.'),
  total_cents: cents('Total, negative when it is in favour of the customer'),
  currency,
  status: refer('InvoiceStatus'),
  ix_sync_state: refer('SyncState'),
  ix_id: wholeOrNull('ID of the external invoicing document. It is null until one is associated.'),
  ix_status: textOrNull(
    'Status of the external document at the external invoicing system, for example `draft` or `settled`.',
  ),
}

const { customer_name, customer_email, company_name, customer_tax_id, ix_created_at, ...detailFields } =
  fields

const sums = {
  status: refer('InvoiceStatus'),
  count: whole('Number of invoices.', { minimum: 1 }),
  total_cents: cents('Sum of `total_cents` of these invoices, exact even beyond 2^53'),
}

const documentFields = {
  id: whole('ID at the external invoicing system.', { minimum: 1 }),
  ...printedFields,
  gross_cents: centsOrNull('Amount that the document charges, with taxes and before any retention'),
  total_cents: centsOrNull('Amount to be paid, which is the gross amount less the retention'),
  in_invoice_currency: {
    anyOf: [refer('ConvertedTotal'), { type: 'null' }],
    description:
      "The total in the invoice's currency. It is null when the document has a total only in its own currency.",
  },
}

const openOrder =
  'Open invoices, the oldest due day first. An invoice without a due day comes after the overdue invoices and before the others.'

export const components = [
  resource('InvoiceSummary', 'An invoice as a list shows it.', { ...fields, ...expandedFields }, expansions),
  resource(
    'InvoiceDetail',
    'One invoice with all its fields and line items.',
    {
      ...detailFields,
      lines: listOf(
        'LineItem',
        'All line items of the invoice. The list is empty when they are unavailable.',
      ),
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
    invoices: listOf(
      'InvoiceSummary',
      'Invoices of this page, in the order of `issued_at`, newest first. Invoices with an equal time are in the order of `id`, highest first.',
      {
        maxItems: maxPageSize,
      },
    ),
    page: whole('Number of the returned page.', { minimum: 1 }),
    page_size: whole('Number of records per page.', { minimum: 1, maximum: maxPageSize }),
    total: whole('Number of all records that match.', { minimum: 0 }),
    total_pages: whole('Number of pages. It is 0 when nothing matches.', { minimum: 0 }),
    source: oneOf(['synchronized_records'], 'System that the data comes from.'),
  }),
  resource('LineItem', 'One line of an invoice.', {
    id: text("The payment platform's line ID."),
    description: textOrNull('Description of the item.'),
    quantity: wholeOrNull('Quantity in whole units. It is null when the line has none.'),
    subtotal_cents: cents('Subtotal before discounts and exclusive tax'),
    discount_cents: cents('Discounts of the line, with its share of the discounts of the invoice'),
    discount_percent: number('Discount in percent of the subtotal.'),
    unit_amount_cents: wholeOrNull(
      "Price of one unit, in the currency's smallest unit. It is null when the line has none.",
    ),
    amount_cents: cents('Subtotal less discount'),
    currency,
  }),
  resource('Downloads', 'Paths of the PDFs on this host. Requests for them use the same Bearer token.', {
    ix: textOrNull("Path of the external document's PDF. It is null until one is associated."),
    payments: text("Path of the payment platform's PDF."),
  }),
  resource('InvoiceDocument', 'The external document of an invoice.', {
    ...documentFields,
    series: textOrNull('Series, for example `A`. It is null until it is issued.'),
    atcud,
    due_date: documentDueDate,
    before_tax_cents: centsOrNull('Total of the document before taxes'),
    tax_cents: centsOrNull('Taxes'),
    retention_percent: numberOrNull(
      'Tax that the client withholds, in percent of the total before taxes. It is null when the client withholds none.',
    ),
    retention_cents: centsOrNull('Tax that the client withholds'),
    currency: {
      ...currency,
      description: 'Currency of the amounts of the document. The invoice may have another currency.',
    },
    taxes: listOrNull(
      'DocumentTax',
      'Taxes by rate, the highest rate first and an unknown rate last. It is null when the taxes are not known.',
    ),
    exemption_code: textOrNull('Code of the reason for which no tax is due, for example `M07`.'),
    buyer_name: textOrNull('Name of the buyer as printed.'),
    buyer_tax_id: textOrNull(
      'Tax ID of the buyer as printed. It is null when the document does not show it.',
    ),
    multibanco: {
      ...refer('Multibanco'),
      description:
        'Numbers to type at a Portuguese cash machine to pay the document. It is null when the document cannot be paid there.',
    },
    qr_path: textOrNull("Path of the QR code's image on this host. It is null when there is none."),
    related: listOrNull(
      'RelatedDocument',
      'Credit notes, debit notes and receipts. It is null until they were read.',
    ),
  }),
  resource('Multibanco', 'Numbers to type at a Portuguese cash machine to pay the document.', {
    entity: text('Five digits.', { pattern: '^[0-9]{5}$' }),
    reference: text('Nine digits.', { pattern: '^[0-9]{9}$' }),
  }),
  resource('DocumentTax', 'The tax of a rate.', {
    rate_percent: numberOrNull('Tax rate in percent. It is null when not known.'),
    base_cents: cents('Amount before the tax'),
    tax_cents: cents('Tax'),
  }),
  resource('ConvertedTotal', "A document's total in the currency of its invoice.", {
    currency,
    total_cents: centsOrNull('Total in this currency'),
    rate: numberOrNull(
      "Exchange rate: the amount in this currency that equals 1 in the document's currency. It is null when it is not known.",
    ),
  }),
  resource('RelatedDocument', 'A credit note, debit note or receipt about a document.', documentFields),
  resource('PaymentPage', 'The page where an invoice can be paid.', {
    url: text('Address of the page. It contains a secret.', { format: 'uri' }),
  }),
  resource('ChangeList', 'The changes after a cursor.', {
    changes: listOf('Change', 'Changes in the order in which they were stored.'),
    next: text('Value of `after` for the next request.'),
  }),
  resource('Change', 'An invoice that changed. Retrieve it again to see the change.', {
    cursor: text('Cursor of the place after this change, in the same feed.'),
    customer_id: fields.customer_id,
    invoice_id: fields.id,
    kind: oneOf(
      changeKinds,
      'Kind of the change. `document` means that only the fields of the external document changed.',
    ),
    version: whole("Version of the customer's invoices after this change.", { minimum: 1 }),
    at: text('Time at which the change was stored, in UTC with milliseconds.', moment),
  }),
  resource('CustomerSummary', "All sums of a customer's invoices.", {
    currencies: listOf('CurrencySummary', 'Sums by currency, in the order of the currency codes.'),
  }),
  resource('CurrencySummary', 'The sums of a currency.', {
    currency,
    remaining_cents: cents('Amount that remains to be paid of open invoices, exact even beyond 2^53'),
    credited_cents: cents('Sum of the valid credit notes of the certified documents of open invoices'),
    statuses: listOf('StatusSum', 'Sums by status, for each status with an invoice.'),
    months: listOf(
      'MonthSum',
      'Sums by month and status, the earliest month first, for each month and status with an invoice.',
    ),
  }),
  resource('StatusSum', 'Number and sum of the invoices of one status.', sums),
  resource('MonthSum', 'Number and sum of the invoices of one status in one month.', {
    month: text('UTC month of `issued_at`.', { pattern: '^\\d{4}-\\d{2}$' }),
    ...sums,
  }),
  resource('CustomerBalance', 'The amounts that a customer has to pay, with the open invoices.', {
    day: text('The UTC day up to which overdue days are counted, YYYY-MM-DD.', { format: 'date' }),
    currencies: listOf(
      'CurrencyBalance',
      'Amounts by currency of open invoices, in the order of the currency codes.',
    ),
    invoices: listOf('OpenInvoice', openOrder, { maxItems: openInvoicesShown }),
    more: whole('Number of open invoices that this answer does not list.', { minimum: 0 }),
  }),
  resource('CurrencyBalance', 'Amounts to be paid in one currency. Sums are exact even beyond 2^53.', {
    currency,
    remaining_cents: cents('Amount that remains to be paid of open invoices. Credit is not subtracted'),
    count: whole('Number of invoices with an amount to be paid.', { minimum: 0 }),
    overdue_cents: cents('Part of `remaining_cents` whose due day has passed'),
    overdue_count: whole('Number of invoices that are overdue.', { minimum: 0 }),
    overdue_since: dayOrNull(
      'The oldest due day that has passed, YYYY-MM-DD. It is null when no due day has passed.',
    ),
    aging: refer('Aging'),
    credit_cents: cents(
      "Amount of open invoices in the customer's favour. It is not subtracted from `remaining_cents`",
    ),
    credit_count: whole("Number of open invoices in the customer's favour.", { minimum: 0 }),
  }),
  resource('Aging', 'Amounts that remain to be paid, by the number of days overdue.', {
    not_overdue_cents: cents('Amount that is not overdue: it is due today, later, or has no due day'),
    overdue_1_30_cents: cents('Amount that is overdue for 1 to 30 days'),
    overdue_31_60_cents: cents('Amount that is overdue for 31 to 60 days'),
    overdue_61_90_cents: cents('Amount that is overdue for 61 to 90 days'),
    overdue_over_90_cents: cents('Amount that is overdue for over 90 days'),
  }),
  resource('OpenInvoice', 'An open invoice and what remains of it.', {
    ...{ id: fields.id, number: fields.number, issued_at: fields.issued_at, currency },
    total_cents: fields.total_cents,
    document_number: textOrNull(
      'Number as printed on the certified document of the invoice. It is null without a document.',
    ),
    paid_cents: cents('Amount of the invoice that was paid'),
    remaining_cents: cents("Amount that remains to be paid. It is 0 for an invoice in the customer's favour"),
    credit_cents: cents("Amount of the invoice in the customer's favour"),
    due_date: dueDate,
    days_overdue: whole('Number of days since the due day. It is 0 until the due day has passed.', {
      minimum: 0,
    }),
    can_be_paid: payable,
  }),
  ...statementResources,
  { $id: 'InvoiceStatus', ...oneOf(invoiceStatuses, "The payment platform's invoice status.") },
  { $id: 'Expansion', ...oneOf(expansions, 'A member that `expand` adds to an invoice.') },
  { $id: 'SyncState', ...oneOf(syncStates, "Synchronization state of the invoice's external document.") },
  ...operationResources,
]
