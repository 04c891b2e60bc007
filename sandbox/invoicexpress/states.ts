/** Creates every state in which a program may leave an invoice's document. */
import { type DocumentType, documentTypes, relatedTypes } from '../../src/domain/document.ts'
import { integer, pick, type Random } from '../random.ts'
import type { StripeInvoice } from '../stripe/objects.ts'
import { followCredits } from './credit-notes.ts'
import { type Draft, type Ledger, recordOf } from './ledger.ts'
import { type IxDocument, type IxStatus, type IxType, toEuros } from './objects.ts'

const fitting: Record<StripeInvoice['status'], IxStatus> = {
  draft: 'draft',
  open: 'final',
  paid: 'settled',
  void: 'canceled',
  uncollectible: 'final',
}

export function fittingStatus({ status }: StripeInvoice): IxStatus {
  return fitting[status]
}

/** Highest amount of a simplified invoice, in euros. */
const simplifiedLimit = 100

/** Draws a document type that fits the invoice. Unpaid invoices get no type that confirms a payment. Simplified invoices have a limit. */
export function fittingType(random: Random, { status, total, currency }: StripeInvoice): DocumentType {
  const unpaid = ['Invoice', 'Invoice', 'SimplifiedInvoice', 'VatMossInvoice'] as const
  const type = pick(random, status === 'paid' ? documentTypes : unpaid)
  return type === 'SimplifiedInvoice' && toEuros(total, currency) > simplifiedLimit ? 'Invoice' : type
}

/** Metadata of an invoice that no document can certify. */
export const needsNone = { ix_state: 'ignored' }

/** Whether a document can certify the invoice. Documents cannot have a negative total or negative taxes. */
export function isCertifiable({ total, total_excluding_tax }: StripeInvoice): boolean {
  const before = total_excluding_tax ?? total
  return before >= 0 && total >= before
}

const hour = 3_600_000
const attemptFailed = [
  'A data do documento é anterior à do último documento da série',
  'O NIF do cliente não é válido',
  'InvoiceXpress: 503',
]

/** Issues a document with the invoice's id as reference, and records its id in the invoice's metadata. */
function issueOrdinary(ledger: Ledger, invoice: StripeInvoice, draft: Draft = {}): IxDocument {
  const document = issue(ledger, invoice, draft)
  ledger.record(invoice.id, { ...recordOf(document, momentOf(ledger, invoice)), ...attempt(ledger, invoice) })
  return document
}

/** Issues a document and assigns it to the invoice. Stripe's metadata stays empty. */
function issue(ledger: Ledger, invoice: StripeInvoice, draft: Draft = {}): IxDocument {
  const type = fittingType(ledger.random, invoice)
  const document = ledger.issue(invoice, { type, status: fittingStatus(invoice), ...draft })
  ledger.ofInvoice.set(invoice.id, document.id)
  return document
}

/** Returns a moment some seconds after the finalization, in milliseconds. */
function momentOf({ account, random }: Ledger, { status_transitions, created }: StripeInvoice): number {
  const at = (status_transitions.finalized_at ?? created) * 1000 + integer(random, 2_000, 90_000)
  return Math.min(at, account.clock * 1000)
}

function attempt({ account, random }: Ledger, { status_transitions, created }: StripeInvoice) {
  const at = (status_transitions.finalized_at ?? created) * 1000 + integer(random, 0, 1_999)
  return { ix_attempted_at: new Date(Math.min(at, account.clock * 1000)).toISOString() }
}

export function recordCreating(ledger: Ledger, invoice: StripeInvoice, age: number): void {
  const at = new Date(ledger.account.clock * 1000 - age).toISOString()
  ledger.record(invoice.id, { ix_state: 'creating', ix_attempted_at: at })
}

export function recordFailed(ledger: Ledger, invoice: StripeInvoice): void {
  const ix_error = pick(ledger.random, attemptFailed)
  ledger.record(invoice.id, { ix_state: 'failed', ix_error, ...attempt(ledger, invoice) })
}

/** Records a document id at Stripe. The id may belong to another document, or to none. */
function recordId(ledger: Ledger, invoice: StripeInvoice, id: number): void {
  const document = { id, type: 'Invoice' } as IxDocument
  ledger.record(invoice.id, recordOf(document, momentOf(ledger, invoice)))
}

/** Returns the PaymentIntent of the invoice's first payment. Null when no payment was needed. */
function paymentOf({ payments }: StripeInvoice): string | null {
  return payments.data.at(-1)?.payment.payment_intent ?? null
}

function numberOfAnother({ account }: Ledger, { customer }: StripeInvoice): string | null {
  for (const other of account.invoices.values())
    if (other.number !== null && other.customer !== customer) return other.number
  return null
}

/** Returns a PaymentIntent that belongs to two invoices. Null when no such PaymentIntent exists. */
function findShared({ account }: Ledger): string | null {
  const seen = new Map<string, string>()
  for (const { id, payments } of account.invoices.values())
    for (const { payment } of payments.data.filter(({ status }) => status !== 'canceled')) {
      if ((seen.get(payment.payment_intent) ?? id) !== id) return payment.payment_intent
      seen.set(payment.payment_intent, id)
    }
  return null
}

type Kind = (ledger: Ledger, invoice: StripeInvoice) => void

const certifying = documentTypes.map((type): [string, Kind] => [
  `by_reference_${type}`,
  (ledger, invoice) => issue(ledger, invoice, { type }),
])

/** States with a document of the given status. The reference and the metadata both link the document. */
const withStatus = (['draft', 'sent', 'second_copy', 'canceled'] as const).map((status): [string, Kind] => [
  `status_${status}`,
  (ledger, invoice) => issueOrdinary(ledger, invoice, { type: 'Invoice', status }),
])

/** States in which only a credit note, debit note or receipt has the invoice's reference. Such documents certify nothing. */
const about = relatedTypes.map((type): [string, Kind] => [
  `only_${type}`,
  (ledger, invoice) => ledger.issue(invoice, { type }),
])

/** References that are similar to the invoice's id and must not link a document. */
const nearly: Record<string, (id: string) => string> = {
  prefix: id => id.slice(0, -1),
  longer: id => `${id}0`,
  case: id =>
    id.replace(/[a-z]/gi, letter =>
      letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
    ),
  space: id => `${id} `,
}
const lookalikes = Object.entries(nearly).map(([name, change]): [string, Kind] => [
  `nearly_${name}`,
  (ledger, invoice) => ledger.issue(invoice, { reference: change(invoice.id) }),
])

const kinds: Record<string, Kind> = {
  ...Object.fromEntries([...certifying, ...withStatus, ...about, ...lookalikes]),
  by_id_other_reference: (ledger, invoice) =>
    issueOrdinary(ledger, invoice, { reference: `Encomenda ${integer(ledger.random, 100, 999)}` }),
  by_uid: (ledger, invoice) => issue(ledger, invoice, { reference: 'Stripe', proprietary_uid: invoice.id }),
  by_id_no_reference: (ledger, invoice) => issueOrdinary(ledger, invoice, { reference: null }),
  creating: (ledger, invoice) => recordCreating(ledger, invoice, 120_000),
  creating_for_long: (ledger, invoice) => recordCreating(ledger, invoice, 72 * hour),
  creating_but_there(ledger, invoice) {
    issue(ledger, invoice)
    recordCreating(ledger, invoice, 72 * hour)
  },
  failed: recordFailed,
  failed_but_there(ledger, invoice) {
    issue(ledger, invoice)
    recordFailed(ledger, invoice)
  },
  ignored: (ledger, invoice) => ledger.record(invoice.id, { ix_state: 'ignored' }),
  nothing: () => {},
  unreadable: (ledger, invoice) =>
    ledger.record(invoice.id, { ix_state: 'done?', ix_id: 'FT 6/G', ix_attempted_at: 'yesterday' }),
  vanished: (ledger, invoice) => recordId(ledger, invoice, ledger.skipId()),
  deleted: (ledger, invoice) => issueOrdinary(ledger, invoice, { type: 'Invoice', status: 'deleted' }),
  archived(ledger, invoice) {
    ledger.put({ ...issueOrdinary(ledger, invoice), archived: true })
  },
  canceled_and_live(ledger, invoice) {
    ledger.issue(invoice, { status: 'canceled' })
    issue(ledger, invoice)
  },
  live_and_canceled(ledger, invoice) {
    issue(ledger, invoice)
    ledger.issue(invoice, { status: 'canceled' })
  },
  two_live(ledger, invoice) {
    issue(ledger, invoice)
    ledger.issue(invoice, { status: fittingStatus(invoice) })
  },
  two_live_one_recorded(ledger, invoice) {
    ledger.issue(invoice, { status: fittingStatus(invoice) })
    issueOrdinary(ledger, invoice)
  },
  /** `copy_beside_original` has a second copy beside its recorded original. `copy_recorded` has the copy recorded instead. */
  copy_beside_original(ledger, invoice) {
    const { type, sequence_number } = issueOrdinary(ledger, invoice)
    issueCopy(ledger, invoice, type, sequence_number)
  },
  copy_recorded(ledger, invoice) {
    const { type, sequence_number } = issue(ledger, invoice)
    const copy = issueCopy(ledger, invoice, type, sequence_number)
    ledger.record(invoice.id, { ...recordOf(copy, momentOf(ledger, invoice)), ...attempt(ledger, invoice) })
  },
  /** An invoice-receipt that is recorded as an invoice. Only its number shows its real type. */
  printed_as_receipt(ledger, invoice) {
    const asReceipt = { sequence_number: ledger.number('InvoiceReceipt') }
    issueOrdinary(ledger, invoice, { type: 'Invoice', ...(invoice.status === 'paid' && asReceipt) })
  },
  with_credit_note(ledger, invoice) {
    const note = ledger.issue(invoice, { type: 'CreditNote', status: 'settled' })
    const { id } = issueOrdinary(ledger, invoice)
    const receipt = ledger.issue(invoice, { type: 'Receipt', status: 'settled' })
    for (const about of [note, receipt]) ledger.owners.set(about.id, id)
  },
  by_payment: (ledger, invoice) => issue(ledger, invoice, { reference: paymentOf(invoice) ?? invoice.id }),
  by_uid_payment: (ledger, invoice) =>
    issue(ledger, invoice, { reference: 'Stripe', proprietary_uid: paymentOf(invoice) ?? invoice.id }),
  by_payment_in_text: (ledger, invoice) =>
    issue(ledger, invoice, { reference: `Order #${paymentOf(invoice) ?? invoice.id}` }),
  by_number: (ledger, invoice) => issue(ledger, invoice, { reference: invoice.number }),
  by_number_of_another: (ledger, invoice) =>
    ledger.issue(invoice, { reference: numberOfAnother(ledger, invoice) }),
  by_payment_of_two: (ledger, invoice) => ledger.issue(invoice, { reference: findShared(ledger) }),
}

function issueCopy(
  ledger: Ledger,
  invoice: StripeInvoice,
  type: IxType,
  sequence_number: string | null,
): IxDocument {
  return ledger.issue(invoice, {
    type,
    status: 'second_copy',
    ...(sequence_number !== null && { sequence_number }),
  })
}

export const stateKinds = Object.keys(kinds)

/**
 * Returns the incorrect state of an invoice by its position. Every third invoice is incorrect until each state has occurred, then every
 * ninth. So most invoices of a large account are correct.
 */
function kindAt(position: number): string | null {
  const often = 3 * stateKinds.length
  if (position < often) return position % 3 === 1 ? (stateKinds[(position - 1) / 3] ?? null) : null
  return position % 9 === 4 ? (stateKinds[Math.floor(position / 9) % stateKinds.length] ?? null) : null
}

/**
 * Issues the documents of all finalized invoices, oldest first. Returns the incorrect states by invoice id. Void invoices have a correct
 * document. Negative invoices have none.
 */
export function issueAll(ledger: Ledger, states: 'ordinary' | 'all'): Map<string, string> {
  const { account, random } = ledger
  const found = new Map<string, string>()
  const finalized: StripeInvoice[] = []
  for (let index = 0; index < account.order.length; index++) {
    const invoice = account.invoices.get(account.order.at(index)) as StripeInvoice
    if (invoice.status !== 'draft') finalized.push(invoice)
  }
  // Positions count down, so that the newest invoices show every state. Connectors read the newest invoices first.
  let position = finalized.filter(each => each.status !== 'void' && isCertifiable(each)).length
  for (const [index, invoice] of finalized.entries()) {
    if (!isCertifiable(invoice)) {
      ledger.record(invoice.id, needsNone)
      continue
    }
    const kind = states === 'all' && invoice.status !== 'void' ? kindAt(--position) : null
    if (kind === null) issueOrdinary(ledger, invoice)
    else {
      found.set(invoice.id, kind)
      kinds[kind]?.(ledger, invoice)
    }
    if (states === 'all' && index % 15 === 7) issueForeign(ledger, invoice, random)
  }
  for (const invoice of finalized) {
    const document = ledger.documents.get(ledger.ofInvoice.get(invoice.id) ?? 0)
    if (document !== undefined && !found.has(invoice.id)) followCredits(ledger, invoice, document)
  }
  return found
}

/** Issues a document that was made by hand and belongs to no invoice. */
function issueForeign(ledger: Ledger, invoice: StripeInvoice, random: Random): void {
  const reference = pick(random, [null, '', `Encomenda ${integer(random, 100, 999)}`, 'in_'])
  const status = pick(random, ['draft', 'final', 'settled'] as const)
  const document = ledger.issue(invoice, { type: pick(random, documentTypes), status, reference })
  ledger.put({ ...document, archived: random() < 0.5, observations: 'Feito à mão' })
}
