/** Builds the fields of `expand` as JSON texts, which are stored with the invoice. Pure functions. */
import { isPayable } from './balance.ts'
import { creditedCents } from './document-json.ts'
import type { briefs, DocumentBrief, Expansion, PaymentBrief } from './expanded.ts'
import { downloadPath, type Invoice, type InvoiceDocument } from './invoice.ts'
import { type PaymentFacts, toPayCents } from './payment.ts'
import { taxesOf } from './taxes.ts'

/**
 * Columns of an invoice with the stored texts of `expand`. `overdue` holds the due day until a request replaces the day by true or false.
 */
export interface ExpansionColumns {
  expanded_document: string
  expanded_payment: string
}

export const columnOfExpansion = {
  document: 'expanded_document',
  payment: 'expanded_payment',
} as const satisfies Record<(typeof briefs)[number], keyof ExpansionColumns>

export function expansionColumns(
  invoice: Invoice,
  facts: PaymentFacts,
  document: InvoiceDocument | null,
): ExpansionColumns {
  const payment = {
    due_date: facts.due_date,
    paid_cents: facts.amount_paid_cents,
    remaining_cents: toPayCents(invoice, facts),
    overdue: (toPayCents(invoice, facts) > 0 && facts.due_date) || false,
    payable: isPayable(invoice, facts, document),
    credited_cents: creditedCents(document, invoice.currency),
  } satisfies Record<keyof PaymentBrief, unknown>
  return {
    expanded_document: JSON.stringify(document && briefDocument(invoice, document)),
    expanded_payment: JSON.stringify(payment),
  }
}

function briefDocument({ customer_id, id }: Invoice, document: InvoiceDocument): DocumentBrief {
  const { number, type, atcud, date, due_date, status } = document
  const pdf = status === 'draft' ? null : downloadPath(customer_id, id, 'ix')
  return { number, type, atcud, date, due_date, status, pdf }
}

/** Facts of a request that complete the stored texts of `expand`. */
export interface PaymentMoment {
  /** Day of the request, YYYY-MM-DD, in UTC. */
  day: string
  /** True when the settings allow customers to pay on the payment platform's page. */
  hasPage: boolean
}

/**
 * Matches the members of a stored `payment` that depend on the request. It skips a settled payment, where both are false. It cannot match
 * inside a JSON string, because quotes have a backslash there.
 */
const undecided = /,"overdue":(?:"(\d{4}-\d\d-\d\d)","payable":(true|false)|false,"payable":true),/g

/** Sets `overdue` and `payable` in stored texts to their values at the time of the request. */
export function completeExpansions(text: string, { day, hasPage }: PaymentMoment): string {
  return text.replace(undecided, (_, dueDate: string | undefined, isPayable = 'true') => {
    const isOverdue = dueDate !== undefined && dueDate < day
    return `,"overdue":${isOverdue},"payable":${hasPage && isPayable === 'true'},`
  })
}

/**
 * Returns the requested fields of one invoice as JSON text. Each field begins with a comma, so the text fits before the closing brace of an
 * object.
 */
export function expandOne(
  expand: readonly Expansion[],
  ...[invoice, facts, document]: Parameters<typeof expansionColumns>
): string {
  const { expanded_document, expanded_payment } = expansionColumns(invoice, facts, document)
  const taxes = JSON.stringify(taxesOf(invoice, facts, document))
  return writeMembers(expand, { document: expanded_document, payment: expanded_payment, taxes })
}

function writeMembers(expand: readonly Expansion[], texts: Partial<Record<Expansion, string>>): string {
  return expand.map(name => `,"${name}":${texts[name]}`).join('')
}
