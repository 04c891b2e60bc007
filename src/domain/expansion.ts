/** The domain: what `expand` adds to an invoice, stored with it as the text that is sent. Pure. */
import { isPayable } from './balance.ts'
import { creditedCents } from './document-json.ts'
import type { briefs, DocumentBrief, Expansion, PaymentBrief } from './expanded.ts'
import { downloadPath, type Invoice, type InvoiceDocument } from './invoice.ts'
import { type PaymentFacts, toPayCents } from './payment.ts'
import { taxesOf } from './taxes.ts'

/** Columns of an invoice. Of `overdue` is stored the day after which it is true, until a request knows its day. */
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

/** What an expanded answer depends on beside the records. */
export interface PaymentMoment {
  /** YYYY-MM-DD, in UTC. */
  day: string
  /** Whether the payment platform's page is named. */
  hasPage: boolean
}

/**
 * What the request decides in a stored `payment`: members that are not simply false. The text stands nowhere else in an answer: inside a
 * JSON string, a quote has a backslash before it.
 */
const undecided = /,"overdue":(?:"(\d{4}-\d\d-\d\d)","payable":(true|false)|false,"payable":true),/g

/** Completes stored texts by the day of the request. */
export function completeExpansions(text: string, { day, hasPage }: PaymentMoment): string {
  return text.replace(undecided, (_, dueDate: string | undefined, isPayable = 'true') => {
    const isOverdue = dueDate !== undefined && dueDate < day
    return `,"overdue":${isOverdue},"payable":${hasPage && isPayable === 'true'},`
  })
}

/** The members of one invoice that are asked for, each with a comma before it, to stand at an object's end. */
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
