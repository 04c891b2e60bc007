/** The story of the demo. The first customer has examples of all kinds of invoices, which change while the demo runs. */
import type { DocumentAccount } from '../../../sandbox/invoicexpress/account.ts'
import type { StripeAccount } from '../../../sandbox/stripe/account.ts'
import type { ChangeKind } from '../../../sandbox/stripe/changes.ts'
import type { StripeInvoice } from '../../../sandbox/stripe/objects.ts'

const day = 86_400

/** The first customer's staged invoices are at most this number of days old when the demo starts. All other invoices are older. */
export const stagedDays = 61

/** The first customer's story repeats after this number of steps. */
export const storySteps = 120

/** The first customer's invoices before the demo, oldest first. */
const staged: readonly { daysAgo: number; daysUntilDue: number; changes: readonly Happening[] }[] = [
  { daysAgo: 58, daysUntilDue: 15, changes: ['finalize', 'document', 'uncollectible'] },
  { daysAgo: 50, daysUntilDue: 30, changes: ['finalize', 'document', 'void'] },
  { daysAgo: 42, daysUntilDue: 30, changes: ['finalize', 'ignored', 'pay'] },
  { daysAgo: 35, daysUntilDue: 30, changes: ['finalize', 'document'] },
  { daysAgo: 27, daysUntilDue: 30, changes: ['finalize', 'failed', 'pay'] },
  { daysAgo: 20, daysUntilDue: 30, changes: ['finalize', 'document', 'pay', 'credit', 'receipt'] },
  { daysAgo: 14, daysUntilDue: 30, changes: ['finalize', 'document', 'pay', 'credit_whole'] },
  { daysAgo: 8, daysUntilDue: 30, changes: ['finalize', 'document'] },
  { daysAgo: 0, daysUntilDue: 30, changes: ['finalize', 'creating'] },
  { daysAgo: 0, daysUntilDue: 30, changes: [] },
]

/** A change of the invoice, a new document, a receipt, or a state recorded in the invoice's metadata. */
type Happening = ChangeKind | 'document' | 'receipt' | 'creating' | 'failed' | 'ignored'

/** The first customer's story. The key is the step within one round of `storySteps` steps. */
const story: Record<number, 'grow' | 'payPart' | 'document' | 'finalize' | 'create' | 'pay'> = {
  0: 'grow',
  6: 'payPart',
  12: 'document',
  18: 'finalize',
  24: 'create',
  30: 'pay',
}

/** The next change of the newest invoice of another customer, by the invoice's status. For any other status, a new invoice is created. */
const next: Partial<Record<string, ChangeKind>> = { draft: 'finalize', open: 'pay' }

/** Chooses a company that pays in euros, deletes its drafts and pays its open invoices. */
export function chooseFirst(account: StripeAccount): string {
  const company = [...account.customers.values()].find(
    customer => !customer.deleted && customer.currency === 'eur' && customer.business_name !== undefined,
  )
  if (company === undefined) throw new Error('the sandbox has no company that pays in euros')
  for (const { id, status } of invoicesOf(account, company.id))
    if (status === 'draft') account.change('delete', id)
    else if (status === 'open' || status === 'uncollectible') account.change('pay', id)
  return company.id
}

/** Creates the first customer's staged invoices up to `now`, and invoices of the other customers between them. */
export function stage(account: StripeAccount, documents: DocumentAccount, first: string, now: number): void {
  for (const { daysAgo, daysUntilDue, changes } of staged) {
    account.clock = now - daysAgo * day
    for (const id of othersOf(account, first))
      make(account, documents, account.createInvoice(id, daysUntilDue), ['finalize', 'document', 'pay'])
    const id = account.createInvoice(first, daysUntilDue)
    make(account, documents, id, changes)
    documents.follow()
  }
}

function make(
  account: StripeAccount,
  documents: DocumentAccount,
  id: string,
  happenings: readonly Happening[],
): void {
  const ix_attempted_at = new Date(account.clock * 1000).toISOString()
  for (const happening of happenings)
    if (happening === 'document') documents.change('create', id, 'Invoice')
    else if (happening === 'receipt') documents.change('pay', id)
    else if (happening === 'creating') account.setMetadata(id, { ix_state: 'creating', ix_attempted_at })
    else if (happening === 'ignored') account.setMetadata(id, { ix_state: 'ignored' })
    else if (happening === 'failed')
      account.setMetadata(id, { ix_state: 'failed', ix_error, ix_attempted_at })
    else account.change(happening, id)
}

const ix_error = 'O NIF do cliente não é válido.'

/** Runs one step of the demo at the given time. Steps are numbered from 0. */
export function live(
  account: StripeAccount,
  documents: DocumentAccount,
  first: string,
  step: number,
  now: number,
): void {
  account.clock = Math.max(account.clock, now)
  const happening = story[step % storySteps]
  if (happening !== undefined) goOn(account, documents, first, happening)
  const others = othersOf(account, first)
  const other = step % 2 === 0 ? undefined : others[(step >> 1) % others.length]
  if (other === undefined) return
  const newest = invoicesOf(account, other).at(-1)
  const kind = next[newest?.status ?? '']
  if (newest === undefined || kind === undefined) account.createInvoice(other, 30)
  else account.change(kind, newest.id)
}

/** Continues the first customer's story. Overdue invoices are never paid, and at least one invoice remains payable. */
function goOn(
  account: StripeAccount,
  documents: DocumentAccount,
  first: string,
  happening: (typeof story)[number],
): void {
  const invoices = invoicesOf(account, first)
  const drafts = invoices.filter(({ status }) => status === 'draft')
  const toPay = invoices.filter(
    ({ status, due_date }) => status === 'open' && (due_date ?? 0) > account.clock,
  )
  const awaited = invoices.filter(({ metadata }) => metadata.ix_state === 'creating')
  const [draft] = drafts
  const [oldest] = toPay
  if (happening === 'create' && draft === undefined) account.createInvoice(first, 30)
  if (happening === 'grow' && draft !== undefined) account.change('update', draft.id)
  if (happening === 'finalize' && draft !== undefined)
    make(account, documents, draft.id, ['finalize', 'creating'])
  if (happening === 'document') for (const { id } of awaited) documents.change('create', id, 'Invoice')
  if (oldest === undefined || toPay.length < 2) return
  if (happening === 'payPart' && oldest.amount_paid === 0) account.change('pay_part', oldest.id)
  if (happening === 'pay') account.change('pay', oldest.id)
}

/** Returns the customer's invoices, oldest first. */
function invoicesOf(account: StripeAccount, customerId: string): StripeInvoice[] {
  return Array.from({ length: account.order.length }, (_, index) => account.order.at(index))
    .flatMap(id => account.invoices.get(id) ?? [])
    .filter(({ customer }) => customer === customerId)
}

const othersOf = (account: StripeAccount, first: string): string[] =>
  [...account.customers.values()].filter(({ id, deleted }) => id !== first && !deleted).map(({ id }) => id)
