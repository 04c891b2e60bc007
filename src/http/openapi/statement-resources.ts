import { entriesOfPage, entryProofs, entryTypes } from '../../domain/account.ts'
import { invoiceIdPattern } from '../../domain/invoice.ts'
import {
  cents,
  currency,
  dayOrNull,
  listOf,
  oneOf,
  refer,
  resource,
  text,
  textOrNull,
  whole,
} from './schema-parts.ts'

export const statementResources = [
  resource('AccountStatement', "A customer's account in a period.", {
    from: dayOrNull('First day, YYYY-MM-DD; null: from the beginning.'),
    to: dayOrNull('Last day, YYYY-MM-DD; null: up to the end.'),
    currencies: listOf('StatementSum', 'Sums of each currency of the account, in the order of their codes.'),
    entries: listOf('StatementEntry', 'The page: the earliest day first.', { maxItems: entriesOfPage.max }),
    page: whole('The page returned.', { minimum: 1 }),
    page_size: whole('Entries per page used.', { minimum: 1, maximum: entriesOfPage.max }),
    total: whole('All entries of the period.', { minimum: 0 }),
    total_pages: whole('Pages in all; 0 when there is no entry.', { minimum: 0 }),
  }),
  resource('StatementSum', 'The sums of a currency, exact also beyond 2^53.', {
    currency,
    opening_cents: cents("Balance before the first day; negative is in the customer's favour"),
    debit_cents: cents('Debits of the whole period'),
    credit_cents: cents('Credits of the whole period'),
    closing_cents: cents('Balance after the last day'),
  }),
  resource('StatementEntry', "An entry of a customer's account.", {
    day: text('Its day, YYYY-MM-DD; of what has none, the latest before it of its invoice.', {
      format: 'date',
    }),
    type: refer('EntryType'),
    proof: refer('EntryProof'),
    number: textOrNull('Number of the certified document, as printed; null without one.'),
    invoice_id: text("The payment platform's invoice ID.", { pattern: invoiceIdPattern }),
    invoice_number: textOrNull('Invoice number; null until the invoice is finalized.'),
    currency,
    debit_cents: whole('What it adds to what is owed, in the smallest unit.', { minimum: 0 }),
    credit_cents: whole('What it takes off it, in the smallest unit.', { minimum: 0 }),
    balance_cents: cents('Balance of its currency after it, exact also beyond 2^53'),
  }),
  {
    $id: 'EntryType',
    ...oneOf(
      entryTypes,
      "Kind of an entry. `balance`: what the invoice took over of the customer's balance at the payment platform; `receipt`: one without a payment of its amount; `refund`: what was given back, or put to that balance; `other`: what the two systems tell apart.",
    ),
  },
  {
    $id: 'EntryProof',
    ...oneOf(
      entryProofs,
      "What proves it: a certified document, the payment platform's record, or only a `sum` at the platform, which tells no day.",
    ),
  },
]
