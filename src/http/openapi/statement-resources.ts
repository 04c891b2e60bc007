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
    from: dayOrNull(
      'First day of the period, YYYY-MM-DD. It is null when the period starts at the beginning of the account.',
    ),
    to: dayOrNull(
      'Last day of the period, YYYY-MM-DD. It is null when the period goes up to the end of the account.',
    ),
    currencies: listOf(
      'StatementSum',
      'Sums by currency of the account, in the order of the currency codes.',
    ),
    entries: listOf('StatementEntry', 'Entries of this page, the earliest day first.', {
      maxItems: entriesOfPage.max,
    }),
    page: whole('Number of the returned page.', { minimum: 1 }),
    page_size: whole('Number of entries per page.', { minimum: 1, maximum: entriesOfPage.max }),
    total: whole('Number of all entries of the period.', { minimum: 0 }),
    total_pages: whole('Number of pages. It is 0 when there are no entries.', { minimum: 0 }),
  }),
  resource('StatementSum', 'The sums of one currency, exact even beyond 2^53.', {
    currency,
    opening_cents: cents("Balance before the first day. A negative balance is in the customer's favour"),
    debit_cents: cents('Sum of the debits of the whole period'),
    credit_cents: cents('Sum of the credits of the whole period'),
    closing_cents: cents('Balance after the last day'),
  }),
  resource('StatementEntry', "An entry of a customer's account.", {
    day: text(
      'Day of the entry, YYYY-MM-DD. An entry without a day has the day of the entry before it of the same invoice.',
      {
        format: 'date',
      },
    ),
    type: refer('EntryType'),
    proof: refer('EntryProof'),
    number: textOrNull('Number of the certified document as printed. It is null without a document.'),
    invoice_id: text("The payment platform's invoice ID.", { pattern: invoiceIdPattern }),
    invoice_number: textOrNull('Invoice number. It is null until the invoice is finalized.'),
    currency,
    debit_cents: whole("Amount that the entry adds to what is owed, in the currency's smallest unit.", {
      minimum: 0,
    }),
    credit_cents: whole(
      "Amount that the entry subtracts from what is owed, in the currency's smallest unit.",
      { minimum: 0 },
    ),
    balance_cents: cents('Balance in the currency after this entry, exact even beyond 2^53'),
  }),
  {
    $id: 'EntryType',
    ...oneOf(
      entryTypes,
      "Kind of an entry. `balance` is the part of the customer's balance at the payment platform that was used for the invoice. `receipt` is a receipt without a payment of its amount. `refund` is an amount that was given back or added to that balance. `other` is a difference between the two systems.",
    ),
  },
  {
    $id: 'EntryProof',
    ...oneOf(
      entryProofs,
      'Proof of the entry: a certified document, a record of the payment platform, or only a `sum` at the platform, which has no day.',
    ),
  },
]
