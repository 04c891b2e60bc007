/** Builds the fields of `expand` as JSON texts, which are stored with the invoice. Pure functions. */
import { isPayable } from './balance.ts'
import { creditedCents } from './document-json.ts'
import { type briefs, type DocumentBrief, type Expansion, expansions, type PaymentBrief } from './expanded.ts'
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

/** Matches `overdue` and `payable` in a stored `payment`. A settled payment does not match, because both are false there. */
const undecided = /,"overdue":(?:"(\d{4}-\d\d-\d\d)","payable":(true|false)|false,"payable":true),/

/** Sets `overdue` and `payable` of a stored payment to their values at the time of the request. */
export function completePayment(text: string, { day, hasPage }: PaymentMoment): string {
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
  moment: PaymentMoment,
  ...[invoice, facts, document]: Parameters<typeof expansionColumns>
): string {
  const { expanded_document, expanded_payment } = expansionColumns(invoice, facts, document)
  const taxes = JSON.stringify(taxesOf(invoice, facts, document))
  return writeMembers(expand, moment, { document: expanded_document, payment: expanded_payment, taxes })
}

/** Number of lines in which the store returns an expanded invoice: one for its summary, and one for each of `expansions`. */
const linesOfInvoice = 1 + expansions.length

/** Writes a page of expanded invoices as JSON texts, joined by commas. The store's texts have no line breaks of their own. */
export function expandLines(lines: string, expand: readonly Expansion[], moment: PaymentMoment): string {
  if (lines === '') return ''
  const texts = lines.split('\n')
  let invoices = ''
  for (let at = 0; at < texts.length; at += linesOfInvoice) {
    const [summary = '', document = '', payment = '', taxes = ''] = texts.slice(at, at + linesOfInvoice)
    const members = writeMembers(expand, moment, { document, payment, taxes })
    invoices += `${at === 0 ? '' : ','}${summary.slice(0, -1)}${members}}`
  }
  return invoices
}

function writeMembers(
  expand: readonly Expansion[],
  moment: PaymentMoment,
  texts: Readonly<Record<Expansion, string>>,
): string {
  let members = ''
  for (const name of expand) {
    const text = name === 'payment' ? completePayment(texts.payment, moment) : texts[name]
    members += `,"${name}":${text}`
  }
  return members
}
