/** Checks that a value is an invoice of the contract: every field of its type, and no other field. */
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
} from '../invoice.ts'

export interface Problem {
  /** As in `lines[2].quantity`; null when the value as a whole is at fault. */
  field: string | null
  /** Completes the sentence "<field> …". */
  reason: string
}

type Check = ReturnType<typeof check>

/** `allowed` completes the sentence "must be …". */
const check = (allowed: string, accepts: (value: unknown) => boolean, nullable = false) => {
  return { allowed, accepts, nullable }
}
const orNull = ({ allowed, accepts }: Check): Check => check(`${allowed}, or null`, accepts, true)
const oneOf = (values: readonly string[]): Check =>
  check(`one of ${values.join(', ')}`, value => values.includes(value as string))

// A NUL and a lone surrogate are not text to every database.
const isText = (value: unknown): value is string =>
  typeof value === 'string' && value.isWellFormed() && !value.includes('\0')
const isMoment = (value: unknown): boolean =>
  isText(value) &&
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value) &&
  !Number.isNaN(Date.parse(value)) &&
  new Date(value).toISOString() === value

const text = check('text without NUL', isText)
const name = check('text of at least one character, without NUL', value => isText(value) && value !== '')
const cents = check("a whole number of the currency's smallest unit", Number.isSafeInteger)
const whole = check('a whole number', Number.isSafeInteger)
const percent = check('a number', Number.isFinite)
const moment = check('a moment in UTC with milliseconds, like 2026-03-02T09:30:00.000Z', isMoment)
const currency = check(
  'a lower-case currency code, like eur',
  value => isText(value) && /^[a-z]{3}$/.test(value),
)

const invoiceChecks: Record<keyof Invoice, Check> = {
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

const lineChecks: Record<keyof Line, Check> = {
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

/** A hostile line could have millions. */
const problemsAtMost = 20

/** Reads one invoice. A field that may be null may be left out, and so may `lines`. Returns up to twenty problems at once. */
export function readRecord(value: unknown): { record: InvoiceRecord } | { problems: Problem[] } {
  if (!isObject(value)) return { problems: [{ field: null, reason: 'must be a JSON object' }] }
  const problems: Problem[] = []
  const invoice = readObject(value, '', invoiceChecks, problems)
  const lines = readLines(value.lines, problems)
  if (problems.length > 0) return { problems: problems.slice(0, problemsAtMost) }
  return { record: { invoice: invoice as unknown as Invoice, lines } }
}

function readLines(value: unknown, problems: Problem[]): Line[] | null {
  if (value === undefined || value === null) return null
  if (!Array.isArray(value)) {
    problems.push({
      field: 'lines',
      reason: 'must be an array of line items, or left out when they are not known',
    })
    return null
  }
  const lines: Line[] = []
  for (const [index, line] of value.entries()) {
    if (problems.length >= problemsAtMost) break
    const path = `lines[${index}]`
    if (isObject(line)) lines.push(readObject(line, `${path}.`, lineChecks, problems) as unknown as Line)
    else problems.push({ field: path, reason: 'must be a JSON object' })
  }
  return lines
}

function readObject(
  value: Record<string, unknown>,
  path: string,
  checks: Record<string, Check>,
  problems: Problem[],
): Record<string, unknown> {
  const result: Record<string, unknown> = {}
  for (const field in checks) {
    const { allowed, accepts, nullable } = checks[field] as Check
    const given = value[field]
    if (nullable && (given === null || given === undefined)) result[field] = null
    else if (given !== undefined && accepts(given)) result[field] = given
    else {
      const found = given === undefined ? 'it is missing' : `found ${show(given)}`
      problems.push({ field: path + field, reason: `must be ${allowed} (${found})` })
    }
  }
  for (const field in value)
    if (!Object.hasOwn(checks, field) && path + field !== 'lines')
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

/** On Node 24, deeply nested values can be parsed, but not written again. */
function toJson(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch {
    return Array.isArray(value) ? '[…]' : '{…}'
  }
}
