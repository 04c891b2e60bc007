/** The sandbox's certified documents, linked to the invoices of its Stripe. The same seed and calls give the same documents. */

import { type DocumentType, documentTypes } from '../../src/domain/document.ts'
import { createRandom, integer } from '../random.ts'
import type { StripeAccount } from '../stripe/account.ts'
import { followCredits } from './credit-notes.ts'
import { type DifferenceKind, differenceKinds, type Planted, plantDifference } from './differences.ts'
import { type Change, createLedger, type Ledger, recordOf } from './ledger.ts'
import { chargedBy, formatDay, type IxClient, type IxDocument, type IxStatus, shareOf } from './objects.ts'
import { type PlantedInSaft, plantInSaft, type SaftDifferenceKind } from './saft-differences.ts'
import { fittingStatus, fittingType, isCertifiable, issueAll, needsNone } from './states.ts'

export interface DocumentOptions {
  seed?: number
  /** With `ordinary`, every finalized invoice has its correct document. With `all`, other states and errors occur as well. */
  states?: 'ordinary' | 'all'
  /** Number of differences planted at the start, of every kind in turn. */
  differences?: number
}

export const documentChangeKinds = [
  'create',
  'finalize',
  'settle',
  'cancel',
  'delete',
  'vanish',
  'refer',
  'credit',
  'pay',
] as const
export type DocumentChangeKind = (typeof documentChangeKinds)[number]

export interface DocumentAccount {
  /** Documents by id, in the order of ids. A document object is replaced, never modified. */
  readonly documents: Map<number, IxDocument>
  readonly clients: Map<number, IxClient>
  /** Changes since the start, oldest first. Lists show a change only after a delay. */
  readonly changes: readonly Change[]
  /** Invoices whose document is not in its correct state. The key is the invoice id, and the value names the state. */
  readonly states: ReadonlyMap<string, string>
  readonly planted: readonly Planted[]
  readonly plantedInSaft: readonly PlantedInSaft[]
  /** Stripe's simulated clock, in seconds since 1970. */
  readonly clock: number
  /**
   * Changes a document, or the document of an invoice. `create` needs an invoice and takes a document type as `value`. `vanish` removes the
   * document, and `delete` sets its status to `deleted`. `refer` changes the reference. `credit` issues a credit note of a share from 0 to
   * 1, by default 1. `pay` issues a receipt and settles the document. Returns the id of the changed or new document. Throws when the
   * document does not allow the change.
   */
  change(kind: DocumentChangeKind, target: number | string, value?: string | null): number
  /** Returns the documents that refer to the given document, or that the given document refers to, oldest first. */
  relatedTo(id: number): IxDocument[]
  /**
   * Applies Stripe's events since the last call to the documents, like the program that creates documents. Creates a document when an
   * invoice is finalized, settles it when the invoice is paid, and cancels it when the invoice is void. Repeats Stripe's credit notes.
   * Invoices in `states` or `planted` stay incorrect. Returns the number of changes.
   */
  follow(): number
  /** Plants a difference at the given invoice. Without `invoiceId`, chooses a correct invoice that fits. Throws when no invoice fits. */
  plant(kind: DifferenceKind, invoiceId?: string): Planted
  /** Plants a difference in a month's SAF-T file. `month` is YYYY-MM, by default the clock's month. Throws when no document fits. */
  plantInSaft(kind: SaftDifferenceKind, month?: string): PlantedInSaft
}

/** Statuses from which a change is allowed. */
const allowed: Record<Exclude<DocumentChangeKind, 'create'>, readonly IxStatus[]> = {
  finalize: ['draft'],
  settle: ['final', 'sent'],
  cancel: ['final', 'sent', 'settled', 'second_copy'],
  delete: ['draft', 'final', 'sent', 'settled', 'canceled', 'second_copy'],
  vanish: ['draft', 'final', 'sent', 'settled', 'canceled', 'second_copy', 'deleted'],
  refer: ['draft', 'final', 'sent', 'settled', 'canceled', 'second_copy'],
  credit: ['final', 'sent', 'settled', 'second_copy'],
  pay: ['final', 'sent'],
}

/** Types of credit notes and receipts, for normal documents and for MOSS documents. */
const aboutTypes = {
  credit: { normal: 'CreditNote', moss: 'VatMossCreditNote' },
  pay: { normal: 'Receipt', moss: 'VatMossReceipt' },
} as const

export function createDocuments(account: StripeAccount, options: DocumentOptions = {}): DocumentAccount {
  const { seed = 1, states: wanted = 'all', differences = 0 } = options
  // The documents have their own random sequence, so Stripe's data does not depend on them.
  const ledger = createLedger(account, createRandom(seed ^ 0x1f83d9ab))
  const { documents, clients, changes, ofInvoice, random } = ledger
  const states = issueAll(ledger, wanted)
  const planted: Planted[] = []
  const plantedInSaft: PlantedInSaft[] = []
  let followed = account.events.length

  const isOrdinary = (id: string) =>
    !states.has(id) && ![...planted, ...plantedInSaft].some(({ invoice_id }) => invoice_id === id)

  function create(invoiceId: string, wanted: DocumentType | null): number {
    const invoice = account.invoices.get(invoiceId)
    if (invoice === undefined) throw new Error(`There is no invoice ${invoiceId}.`)
    if (invoice.status === 'draft') throw new Error(`Invoice ${invoiceId} is a draft: it has no document.`)
    if (!isCertifiable(invoice)) throw new Error(`Invoice ${invoiceId} is negative: it has no document.`)
    const at = account.clock * 1000 + integer(random, 0, 999)
    ledger.record(invoiceId, { ix_state: 'creating', ix_attempted_at: new Date(at).toISOString() })
    const type = wanted ?? fittingType(random, invoice)
    const document = ledger.issue(invoice, { type, status: fittingStatus(invoice) })
    ofInvoice.set(invoiceId, document.id)
    ledger.record(invoiceId, { ...recordOf(document, at + integer(random, 200, 3_000)), ix_error: '' })
    return document.id
  }

  function find(target: number | string): IxDocument {
    const id = typeof target === 'number' ? target : ofInvoice.get(target)
    const document = documents.get(id ?? 0)
    if (document === undefined) throw new Error(`There is no document ${target}.`)
    return document
  }

  const steps: Record<
    Exclude<DocumentChangeKind, 'create' | 'vanish' | 'refer' | 'credit' | 'pay'>,
    (document: IxDocument) => IxDocument
  > = {
    finalize: document => ({
      ...document,
      status: 'final',
      sequence_number: document.sequence_number ?? ledger.number(document.type),
    }),
    settle: document => ({ ...document, status: 'settled' }),
    cancel: document => ({ ...document, status: 'canceled' }),
    delete: document => ({ ...document, status: 'deleted' }),
  }

  /**
   * Issues a credit note or a receipt. As at InvoiceXpress, credit notes never exceed the document. A type that is paid at its issue gets
   * no receipt.
   */
  function issueAbout(document: IxDocument, kind: 'credit' | 'pay', share: number): number {
    if (!(documentTypes as readonly string[]).includes(document.type))
      throw new Error(`Document ${document.id} is a ${document.type}: it does not ${kind}.`)
    if (kind === 'pay' && ['InvoiceReceipt', 'CashInvoice'].includes(document.type))
      throw new Error(`Document ${document.id} is a ${document.type}: it is paid already.`)
    const credited = made
      .relatedTo(document.id)
      .filter(({ type, status }) => type.endsWith('CreditNote') && status !== 'canceled')
      .reduce((all, note) => all + chargedBy(note), 0)
    const parts = shareOf(document, share)
    const remaining = chargedBy(document) - credited
    if (!(share > 0) || (kind === 'credit' && chargedBy(parts) > remaining))
      throw new Error(`Document ${document.id} has ${remaining} left: that is no share of it.`)
    const type = aboutTypes[kind][document.type === 'VatMossInvoice' ? 'moss' : 'normal']
    const day = formatDay(account.clock)
    const { id } = ledger.put({
      ...parts,
      id: ledger.skipId(),
      type,
      status: kind === 'credit' ? 'final' : 'settled',
      sequence_number: ledger.number(type),
      proprietary_uid: null,
      date: day,
      due_date: day,
    })
    ledger.owners.set(id, document.id)
    if (kind === 'pay') ledger.put(steps.settle(document))
    return id
  }

  const made: DocumentAccount = {
    documents,
    clients,
    changes,
    states,
    planted,
    plantedInSaft,
    get clock() {
      return account.clock
    },
    relatedTo(id) {
      const ids = [...ledger.owners].flatMap(([about, owner]) =>
        owner === id ? about : about === id ? owner : [],
      )
      return ids.sort((a, b) => a - b).flatMap(each => documents.get(each) ?? [])
    },
    change(kind, target, value = null) {
      if (kind === 'create') return create(String(target), readType(value))
      const document = find(target)
      if (!allowed[kind].includes(document.status))
        throw new Error(`Document ${document.id} is ${document.status}: it does not ${kind}.`)
      if (kind === 'credit' || kind === 'pay') return issueAbout(document, kind, Number(value ?? 1))
      if (kind === 'vanish') ledger.remove(document.id)
      else if (kind === 'refer') ledger.put({ ...document, reference: value })
      else ledger.put(steps[kind](document))
      return document.id
    },
    follow() {
      const touched = new Set<string>()
      for (const { data } of account.events.slice(followed))
        if (data.object.object === 'invoice' && typeof data.object.id === 'string')
          touched.add(data.object.id)
      let count = 0
      for (const id of touched) if (catchUp(ledger, made, id, isOrdinary(id))) count++
      followed = account.events.length
      return count
    },
    plant(kind, invoiceId) {
      const difference = plantDifference(ledger, kind, isOrdinary, invoiceId)
      planted.push(difference)
      return difference
    },
    plantInSaft(kind, month) {
      const difference = plantInSaft(ledger, kind, isOrdinary, month)
      plantedInSaft.push(difference)
      return difference
    },
  }
  for (let index = 0; index < differences; index++)
    made.plant(differenceKinds[index % differenceKinds.length] as DifferenceKind)
  ledger.open()
  return made
}

function readType(value: string | null): DocumentType | null {
  const type = documentTypes.find(each => each === value)
  if (value !== null && type === undefined) throw new Error(`No document of the type ${value} certifies.`)
  return type ?? null
}

function catchUp(ledger: Ledger, made: DocumentAccount, id: string, isOrdinary: boolean): boolean {
  const invoice = ledger.account.invoices.get(id)
  if (invoice === undefined || invoice.status === 'draft') return false
  const document = ledger.documents.get(ledger.ofInvoice.get(id) ?? 0)
  if (document === undefined) {
    // An invoice with a recorded state keeps that state until a person changes it.
    const isDue = isOrdinary && invoice.status !== 'void' && invoice.metadata.ix_state === undefined
    if (!isDue) return false
    if (!isCertifiable(invoice)) {
      ledger.record(id, needsNone)
      return false
    }
    made.change('create', id)
    return true
  }
  const isCredited = isOrdinary && followCredits(ledger, invoice, document)
  const kind = invoice.status === 'paid' ? 'settle' : invoice.status === 'void' ? 'cancel' : null
  if (kind === null || !allowed[kind].includes(document.status) || (kind === 'cancel' && !isOrdinary))
    return isCredited
  made.change(kind, document.id)
  return true
}
