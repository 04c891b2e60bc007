/** What the store must say of documents in the end, told plainly from the sandbox's two accounts. */
import assert from 'node:assert/strict'
import type { DocumentAccount } from '../../../sandbox/invoicexpress/account.ts'
import type { IxDocument } from '../../../sandbox/invoicexpress/objects.ts'
import type { StripeAccount } from '../../../sandbox/stripe/account.ts'
import type { StripeInvoice } from '../../../sandbox/stripe/objects.ts'
import { documentTypes } from '../../../src/domain/document.ts'
import type { Invoice } from '../../../src/domain/invoice.ts'
import type { WriteStore } from '../../../src/store/store.ts'
import { readAll } from '../worlds/sync.ts'

type Fields = Pick<Invoice, 'ix_sync_state' | 'ix_id' | 'ix_status' | 'ix_created_at'>

const hour = 3_600_000

/** By the convention's words, one after the other; written without a look at the code that does the same. */
export function trueFields(
  invoice: StripeInvoice,
  documents: Iterable<IxDocument>,
  payers: ReadonlyMap<string, readonly StripeInvoice[]> = payersOf([invoice]),
): Fields {
  const { ix_state, ix_id, ix_created_at, ix_attempted_at } = invoice.metadata
  const certifying = [...documents].filter(
    ({ type, status }) => (documentTypes as readonly string[]).includes(type) && status !== 'deleted',
  )
  const claimed = certifying.find(({ id }) => String(id) === ix_id)
  const referring = certifying
    .filter(document => namedBy(document, payers) === invoice.id)
    .sort((a, b) => a.id - b.id)
  // A second print says nothing that its original does not, and is one only where that is not there.
  const isSecond = ({ status, type, sequence_number }: IxDocument) =>
    status === 'second_copy' &&
    referring.some(
      other => other.status !== status && other.type === type && other.sequence_number === sequence_number,
    )
  const own = referring.filter(document => !isSecond(document))
  const inForce = own.filter(({ status }) => status !== 'canceled')
  const found = claimed ?? inForce.find(({ status }) => status !== 'second_copy') ?? inForce[0] ?? own[0]
  if (found !== undefined) {
    const [day, month, year] = found.date.split('/')
    return {
      ix_sync_state: 'synced',
      ix_id: found.id,
      ix_status: found.status,
      ix_created_at: ix_created_at ?? `${year}-${month}-${day}T00:00:00.000Z`,
    }
  }
  const none = { ix_id: null, ix_status: null, ix_created_at: null }
  if (ix_state === 'ignored' || ix_state === 'failed') return { ix_sync_state: ix_state, ...none }
  if (ix_state === 'creating') {
    const isOld = Date.now() - Date.parse(ix_attempted_at ?? '') > hour
    return { ix_sync_state: isOld ? 'failed' : 'creating', ...none }
  }
  return { ix_sync_state: /^\d+$/.test(ix_id ?? '') ? 'failed' : 'not_synced', ...none }
}

/** The invoices of each PaymentIntent that is not canceled. */
function payersOf(invoices: Iterable<StripeInvoice>): Map<string, StripeInvoice[]> {
  const payers = new Map<string, StripeInvoice[]>()
  for (const invoice of invoices)
    for (const { status, payment } of invoice.payments.data)
      if (status !== 'canceled')
        payers.set(payment.payment_intent, [...(payers.get(payment.payment_intent) ?? []), invoice])
  return payers
}

/** The invoice that a document names: by its ID, else by a payment that no other invoice has; in the reference or in the maker's own ID. */
function namedBy(
  { reference, proprietary_uid }: IxDocument,
  payers: ReadonlyMap<string, readonly StripeInvoice[]>,
): string | null {
  const isInvoice = (text: string | null) => /^in_[A-Za-z0-9]+$/.test(text ?? '')
  if (isInvoice(reference)) return reference
  if (isInvoice(proprietary_uid)) return proprietary_uid
  const paid = new Set([reference, proprietary_uid].flatMap(text => payers.get(text ?? '') ?? []))
  const [only, ...others] = paid
  return only !== undefined && others.length === 0 ? only.id : null
}

/** The fields that do not fit, by invoice: none when the store follows both systems. */
export async function differingFields(
  store: WriteStore,
  account: StripeAccount,
  { documents }: DocumentAccount,
): Promise<Record<string, { stored: Fields; truth: Fields }>> {
  const stored = await readAll(store)
  const payers = payersOf(account.invoices.values())
  const byName = Map.groupBy(documents.values(), document => namedBy(document, payers))
  const differing: Record<string, { stored: Fields; truth: Fields }> = {}
  for (const { id, summary } of stored) {
    const invoice = account.invoices.get(id)
    assert.ok(invoice !== undefined, `${id} is stored, and is not there`)
    const claimed = documents.get(Number(invoice.metadata.ix_id))
    const related = [...(claimed ? [claimed] : []), ...(byName.get(id) ?? [])]
    const truth = trueFields(invoice, new Set(related), payers)
    const { ix_sync_state, ix_id, ix_status, ix_created_at } = JSON.parse(summary) as Invoice
    const fields = { ix_sync_state, ix_id, ix_status, ix_created_at }
    if (JSON.stringify(fields) !== JSON.stringify(truth)) differing[id] = { stored: fields, truth }
  }
  return differing
}

export async function assertDocumentsTrue(
  store: WriteStore,
  account: StripeAccount,
  documents: DocumentAccount,
): Promise<void> {
  const differing = Object.entries(await differingFields(store, account, documents))
  assert.deepEqual(differing.slice(0, 3), [], `${differing.length} invoices differ`)
}
