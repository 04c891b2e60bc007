/** Checks that a value is an invoice of the contract, with every field of its type and no other field. */
import { isCalendarDay } from '../../domain/calendar.ts'
import {
  type Invoice,
  type InvoiceRecord,
  invoiceStatuses,
  isCustomerId,
  isInvoiceId,
  isIxStatus,
  type Line,
  longestIxStatus,
  syncStates,
} from '../../domain/invoice.ts'
import {
  completePaymentFacts,
  type Payment,
  type PaymentFacts,
  type TaxByRate,
} from '../../domain/payment.ts'

export interface Problem {
  /** Path of the field, for example `lines[2].quantity`. Null when the value as a whole is wrong. */
  field: string | null
  /** The rest of a sentence that begins with the field, for example "must be a JSON object". */
  reason: string
}

export type Check = ReturnType<typeof check>

/** Creates a check. `allowed` completes the sentence "must be …". */
const check = (allowed: string, accepts: (value: unknown) => boolean, nullable = false, optional = false) => {
  return { allowed, accepts, nullable, optional }
}
const orNull = ({ allowed, accepts }: Check): Check => check(`${allowed}, or null`, accepts, true)
const oneOf = (values: readonly string[]): Check =>
  check(`one of ${values.join(', ')}`, value => values.includes(value as string))

// Some databases cannot store a NUL or a lone surrogate as text.
const isText = (value: unknown): value is string =>
  typeof value === 'string' && value.isWellFormed() && !value.includes('\0')
const isMoment = (value: unknown): boolean =>
  isText(value) &&
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value) &&
  !Number.isNaN(Date.parse(value)) &&
  new Date(value).toISOString() === value

const text = check('text without NUL', isText)
const name = check('text of at least one character, without NUL', value => isText(value) && value !== '')
/** Maximum amount of an invoice, in cents. Sums over the invoices of a customer without counters then stay within 64 bits. */
const maxCents = 10 ** 15
const cents = check(
  "a whole number in the currency's smallest unit, from -10^15 to 10^15",
  value => Number.isSafeInteger(value) && Math.abs(Number(value)) <= maxCents,
)
const whole = check('a whole number', Number.isSafeInteger)
const percent = check('a number', Number.isFinite)
const moment = check('a moment in UTC with milliseconds, like 2026-03-02T09:30:00.000Z', isMoment)
const currency = check(
  'a lower-case currency code, like eur',
  value => isText(value) && /^[a-z]{3}$/.test(value),
)

export const invoiceChecks: Record<keyof Invoice, Check> = {
  id: check('an ID that begins with in_', value => isText(value) && isInvoiceId(value)),
  number: orNull(text),
  display_name: name,
  customer_name: orNull(text),
  customer_id: check('an ID that begins with cus_', value => isText(value) && isCustomerId(value)),
  customer_email: orNull(text),
  company_name: orNull(text),
  customer_tax_id: orNull(text),
  issued_at: moment,
  ix_created_at: orNull(moment),
  subtotal_cents: cents,
  discount_cents: cents,
  tax_cents: cents,
  tax_percent: orNull(percent),
  total_cents: cents,
  currency,
  status: oneOf(invoiceStatuses),
  ix_sync_state: oneOf(syncStates),
  ix_id: orNull(whole),
  ix_status: orNull(
    check(
      `text of at most ${longestIxStatus} characters, without NUL`,
      value => isText(value) && isIxStatus(value),
    ),
  ),
}

export const lineChecks: Record<keyof Line, Check> = {
  id: name,
  description: orNull(text),
  quantity: orNull(whole),
  subtotal_cents: cents,
  discount_cents: cents,
  discount_percent: percent,
  unit_amount_cents: orNull(cents),
  amount_cents: cents,
  currency,
}

const absent = (checked: Check): Check => ({ ...checked, optional: true })
const positive = check(
  'a whole number, 0 or more',
  value => Number.isSafeInteger(value) && Number(value) >= 0,
)

/** Every payment fact may be left out, because it follows from the other facts, the status and the total. */
export const paymentChecks: Record<Exclude<keyof PaymentFacts, 'taxes' | 'payments'>, Check> = {
  due_date: orNull(check('a day, like 2026-04-01', value => isText(value) && isCalendarDay(value))),
  amount_due_cents: absent(cents),
  amount_paid_cents: absent(cents),
  amount_remaining_cents: absent(cents),
  pre_payment_credit_cents: absent(positive),
  post_payment_credit_cents: absent(positive),
  starting_balance_cents: absent(cents),
  closed_at: orNull(moment),
}

const taxChecks: Record<keyof TaxByRate, Check> = {
  rate_percent: orNull(percent),
  base_cents: orNull(cents),
  tax_cents: cents,
  reason: orNull(text),
}

const paidChecks: Record<keyof Payment, Check> = {
  id: name,
  amount_cents: cents,
  paid_at: orNull(moment),
}

/** Maximum number of reported problems. A hostile line could have millions of problems. */
const maxProblems = 20

/** Reads one invoice. A field that may be null may be left out, and so may `lines` and `payment`. Returns at most twenty problems. */
export function readRecord(value: unknown): { record: InvoiceRecord } | { problems: Problem[] } {
  if (!isObject(value)) return { problems: [{ field: null, reason: 'must be a JSON object' }] }
  const problems: Problem[] = []
  const invoice = readObject(value, '', invoiceChecks, problems, ['lines', 'payment']) as unknown as Invoice
  const lines = readList<Line>(value.lines, 'lines', 'line items', lineChecks, problems)
  const given = readPayment(value.payment, problems)
  if (problems.length > 0) return { problems: problems.slice(0, maxProblems) }
  if (given === null) return { record: { invoice, lines } }
  const payment = completePaymentFacts(invoice, given)
  const wrong = checkSum(payment, invoice)
  return wrong === null ? { record: { invoice, lines, payment } } : { problems: [wrong] }
}

/** Returns null when the record holds nothing about its payment. */
function readPayment(value: unknown, problems: Problem[]): Partial<PaymentFacts> | null {
  if (value === undefined || value === null) return null
  if (!isObject(value)) {
    problems.push({ field: 'payment', reason: 'must be a JSON object, or left out' })
    return null
  }
  const facts = readObject(value, 'payment.', paymentChecks, problems, ['taxes', 'payments'])
  const taxes = readList<TaxByRate>(value.taxes, 'payment.taxes', 'taxes', taxChecks, problems)
  const payments =
    readList<Payment>(value.payments, 'payment.payments', 'payments', paidChecks, problems) ?? []
  if (new Set(payments.map(({ id }) => id)).size < payments.length)
    problems.push({ field: 'payment.payments', reason: 'must name each payment once' })
  return { ...facts, taxes, payments }
}

/** Checks that the amount due is the sum of the paid and the remaining amount. The remaining amount of a void invoice may be 0. */
function checkSum(facts: PaymentFacts, { status }: Invoice): Problem | null {
  const { amount_due_cents: due, amount_paid_cents: paid, amount_remaining_cents: remaining } = facts
  if (due === paid + remaining || (status === 'void' && remaining === 0)) return null
  const reason = `must be amount_due_cents less amount_paid_cents (found ${due} − ${paid} and ${remaining})`
  return { field: 'payment.amount_remaining_cents', reason }
}

/** Returns null when the list is left out, or when the value is no list. */
function readList<Row>(
  value: unknown,
  path: string,
  of: string,
  checks: Record<keyof Row & string, Check>,
  problems: Problem[],
): Row[] | null {
  if (value === undefined || value === null) return null
  if (!Array.isArray(value)) {
    problems.push({ field: path, reason: `must be an array of ${of}, or left out when they are not known` })
    return null
  }
  const rows: Row[] = []
  for (const [index, row] of value.entries()) {
    if (problems.length >= maxProblems) break
    const at = `${path}[${index}]`
    if (isObject(row)) rows.push(readObject(row, `${at}.`, checks, problems) as Row)
    else problems.push({ field: at, reason: 'must be a JSON object' })
  }
  return rows
}

/** Reads the checked fields of an object. `others` names fields that are read separately. */
function readObject(
  value: Record<string, unknown>,
  path: string,
  checks: Record<string, Check>,
  problems: Problem[],
  others: readonly string[] = [],
): Record<string, unknown> {
  const result: Record<string, unknown> = {}
  for (const field in checks) {
    const { allowed, accepts, nullable, optional } = checks[field] as Check
    const given = value[field]
    if (optional && given === undefined) continue
    if (nullable && (given === null || given === undefined)) result[field] = null
    else if (given !== undefined && accepts(given)) result[field] = given
    else {
      const found = given === undefined ? 'it is missing' : `found ${show(given)}`
      problems.push({ field: path + field, reason: `must be ${allowed} (${found})` })
    }
  }
  for (const field in value)
    if (!Object.hasOwn(checks, field) && !others.includes(field))
      problems.push({ field: path + show(field), reason: 'is not a field of the contract' })
  return result
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function show(value: unknown): string {
  const isPlain = typeof value === 'number' || (typeof value === 'string' && /^\w+$/.test(value))
  const shown = isPlain ? String(value) : toJson(value)
  return shown.length > 60 ? `${shown.slice(0, 57)}…` : shown
}

/** On Node 24, a deeply nested value can be parsed, but `JSON.stringify` throws for it. */
function toJson(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch {
    return Array.isArray(value) ? '[…]' : '{…}'
  }
}
