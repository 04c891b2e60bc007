/** Every state of an invoice's document, as the creator of documents may leave it. */
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

/** The correct status of an invoice's document. */
export function fittingStatus({ status }: StripeInvoice): IxStatus {
  return fitting[status]
}

/** The most that a simplified invoice may charge, in euros. */
const simplifiedLimit = 100

/** Any certifying type for a paid invoice; for others, none that confirms a payment. A simplified one has its limit. */
export function fittingType(random: Random, { status, total, currency }: StripeInvoice): DocumentType {
  const unpaid = ['Invoice', 'Invoice', 'SimplifiedInvoice', 'VatMossInvoice'] as const
  const type = pick(random, status === 'paid' ? documentTypes : unpaid)
  return type === 'SimplifiedInvoice' && toEuros(total, currency) > simplifiedLimit ? 'Invoice' : type
}

/** What is recorded of an invoice that no document can certify. */
export const needsNone = { ix_state: 'ignored' }

/** No document certifies a negative amount, neither in all nor of taxes. */
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

/** The correct state: a document by both links. */
function issueOrdinary(ledger: Ledger, invoice: StripeInvoice, draft: Draft = {}): IxDocument {
  const document = issue(ledger, invoice, draft)
  ledger.record(invoice.id, { ...recordOf(document, momentOf(ledger, invoice)), ...attempt(ledger, invoice) })
  return document
}

/** A document that is the invoice's, with nothing recorded at Stripe. */
function issue(ledger: Ledger, invoice: StripeInvoice, draft: Draft = {}): IxDocument {
  const type = fittingType(ledger.random, invoice)
  const document = ledger.issue(invoice, { type, status: fittingStatus(invoice), ...draft })
  ledger.ofInvoice.set(invoice.id, document.id)
  return document
}

/** Some seconds after it was finalized, in milliseconds. */
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

/** Records another document than the one with the reference, or none that exists. */
function recordId(ledger: Ledger, invoice: StripeInvoice, id: number): void {
  const document = { id, type: 'Invoice' } as IxDocument
  ledger.record(invoice.id, recordOf(document, momentOf(ledger, invoice)))
}

/** The PaymentIntent of its first payment; null where nothing was to pay. */
function paymentOf({ payments }: StripeInvoice): string | null {
  return payments.data.at(-1)?.payment.payment_intent ?? null
}

/** The number of an invoice of another customer. */
function numberOfAnother({ account }: Ledger, { customer }: StripeInvoice): string | null {
  for (const other of account.invoices.values())
    if (other.number !== null && other.customer !== customer) return other.number
  return null
}

/** A PaymentIntent of two invoices; null where there is none. */
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

/** A document of this status, by both links. */
const standing = (['draft', 'sent', 'second_copy', 'canceled'] as const).map((status): [string, Kind] => [
  `status_${status}`,
  (ledger, invoice) => issueOrdinary(ledger, invoice, { type: 'Invoice', status }),
])

/** A document about the invoice, that certifies nothing, is the only one with its reference. */
const about = relatedTypes.map((type): [string, Kind] => [
  `only_${type}`,
  (ledger, invoice) => ledger.issue(invoice, { type }),
])

/** References that are nearly the invoice's id, and are none. */
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
  ...Object.fromEntries([...certifying, ...standing, ...about, ...lookalikes]),
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
  /** A second print beside its original, which alone is recorded; and one that is recorded in its place. */
  copy_beside_original(ledger, invoice) {
    const { type, sequence_number } = issueOrdinary(ledger, invoice)
    issueCopy(ledger, invoice, type, sequence_number)
  },
  copy_recorded(ledger, invoice) {
    const { type, sequence_number } = issue(ledger, invoice)
    const copy = issueCopy(ledger, invoice, type, sequence_number)
    ledger.record(invoice.id, { ...recordOf(copy, momentOf(ledger, invoice)), ...attempt(ledger, invoice) })
  },
  /** An invoice-receipt that is given out as an invoice: only its number says what it is. */
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

/** One in three until each occurred, then one in nine, so that most invoices of a large account are correct too. */
function kindAt(place: number): string | null {
  const often = 3 * stateKinds.length
  if (place < often) return place % 3 === 1 ? (stateKinds[(place - 1) / 3] ?? null) : null
  return place % 9 === 4 ? (stateKinds[Math.floor(place / 9) % stateKinds.length] ?? null) : null
}

/**
 * Issues the documents of all finalized invoices, oldest first. Returns the kind of each that is not correct. Those of void
 * invoices always are, so that a live document there is never there by chance; negative ones never have one.
 */
export function issueAll(ledger: Ledger, states: 'ordinary' | 'all'): Map<string, string> {
  const { account, random } = ledger
  const found = new Map<string, string>()
  const finalized: StripeInvoice[] = []
  for (let index = 0; index < account.order.length; index++) {
    const invoice = account.invoices.get(account.order.at(index)) as StripeInvoice
    if (invoice.status !== 'draft') finalized.push(invoice)
  }
  // The newest are read first, and should show every kind.
  let place = finalized.filter(each => each.status !== 'void' && isCertifiable(each)).length
  for (const [index, invoice] of finalized.entries()) {
    if (!isCertifiable(invoice)) {
      ledger.record(invoice.id, needsNone)
      continue
    }
    const kind = states === 'all' && invoice.status !== 'void' ? kindAt(--place) : null
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

/** A document that belongs to no invoice, made by hand. */
function issueForeign(ledger: Ledger, invoice: StripeInvoice, random: Random): void {
  const reference = pick(random, [null, '', `Encomenda ${integer(random, 100, 999)}`, 'in_'])
  const status = pick(random, ['draft', 'final', 'settled'] as const)
  const document = ledger.issue(invoice, { type: pick(random, documentTypes), status, reference })
  ledger.put({ ...document, archived: random() < 0.5, observations: 'Feito à mão' })
}
