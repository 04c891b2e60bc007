/** Documents and clients of the local InvoiceXpress, and their metadata at Stripe. */

import { integer, type Random } from '../random.ts'
import type { StripeAccount } from '../stripe/account.ts'
import { mergeMetadata, type StripeInvoice } from '../stripe/objects.ts'
import {
  currencyOf,
  formatDay,
  type IxClient,
  type IxDocument,
  type IxItem,
  type IxStatus,
  type IxType,
  ixTypes,
  toMajor,
} from './objects.ts'

/** A change that lists show only after a while. */
export interface Change {
  id: number
  /** By `performance.now()`: real time, since clients really wait. */
  at: number
  /** The document before the change; null when there was none. */
  before: IxDocument | null
}

export interface Draft {
  type?: IxType
  status?: IxStatus
  reference?: string | null
  proprietary_uid?: string | null
  client?: IxClient
}

export interface Ledger {
  readonly account: StripeAccount
  readonly random: Random
  /** By id, in the order of ids. */
  readonly documents: Map<number, IxDocument>
  readonly clients: Map<number, IxClient>
  readonly changes: Change[]
  /** The document of an invoice, by the invoice's id. */
  readonly ofInvoice: Map<string, number>
  /** The document that a credit note, debit note or receipt is about. */
  readonly owners: Map<number, number>
  /** From then on, changes are remembered and metadata makes events. */
  open(): void
  /** Adds a new document of an invoice: by reference, with its total, dated by its finalization. */
  issue(invoice: StripeInvoice, draft?: Draft): IxDocument
  /** Replaces a document. */
  put(document: IxDocument): IxDocument
  /** Removes a document without a trace. */
  remove(id: number): void
  /** A new client with the name and tax id of the invoice. */
  addClient(invoice: StripeInvoice): IxClient
  /** An id that no document ever gets. */
  skipId(): number
  /** The next number in a type's series. */
  number(type: IxType): string
  record(invoiceId: string, entries: Record<string, string>): void
}

export function createLedger(account: StripeAccount, random: Random): Ledger {
  const documents = new Map<number, IxDocument>()
  const clients = new Map<number, IxClient>()
  const clientOf = new Map<string, IxClient>()
  const changes: Change[] = []
  const numbers = new Map<IxType, number>()
  let isOpen = false
  let lastId = 48_000_000
  let lastClient = 7_100_000

  /** Ids rise, with gaps: the real system has other accounts. */
  const skipId = () => {
    lastId += integer(random, 1, 9)
    return lastId
  }

  function keep(id: number): void {
    if (isOpen) changes.push({ id, at: performance.now(), before: documents.get(id) ?? null })
  }

  const ledger: Ledger = {
    account,
    random,
    documents,
    clients,
    changes,
    ofInvoice: new Map(),
    owners: new Map(),
    open() {
      isOpen = true
    },
    issue(invoice, draft = {}) {
      const { type = 'Invoice', status = 'final', reference = invoice.id, proprietary_uid = null } = draft
      const { id, name, country } = draft.client ?? findClient(invoice)
      return ledger.put({
        id: skipId(),
        status,
        archived: false,
        type,
        sequence_number: status === 'draft' ? null : ledger.number(type),
        ...daysOf(invoice),
        reference,
        proprietary_uid,
        observations: null,
        ...amountsOf(invoice),
        currency: currencyOf(invoice.currency).name,
        client: { id, name, country },
        items: itemsOf(invoice, account),
        tax_exemption: invoice.total === invoice.total_excluding_tax ? 'M07' : null,
      })
    },
    put(document) {
      keep(document.id)
      documents.set(document.id, document)
      return document
    },
    remove(id) {
      keep(id)
      documents.delete(id)
    },
    addClient(invoice) {
      lastClient += integer(random, 1, 9)
      const taxId = taxIdOf(invoice)
      const client: IxClient = {
        id: lastClient,
        name: invoice.customer_name ?? 'Consumidor final',
        code: ownerOf(invoice),
        email: invoice.customer_email,
        language: 'pt',
        address: null,
        city: null,
        postal_code: null,
        country: currencyOf(invoice.currency).country,
        fiscal_id: taxId === null ? null : asTyped(taxId, clients.size % 2 === 0),
        website: null,
        phone: null,
        observations: null,
      }
      clients.set(client.id, client)
      return client
    },
    skipId,
    number(type) {
      const number = (numbers.get(type) ?? 0) + 1
      numbers.set(type, number)
      return `${number}/${ixTypes[type].series}`
    },
    record(invoiceId, entries) {
      if (isOpen) return account.setMetadata(invoiceId, entries)
      const invoice = account.invoices.get(invoiceId)
      if (invoice === undefined) throw new Error(`There is no invoice ${invoiceId}.`)
      account.invoices.set(invoiceId, { ...invoice, metadata: mergeMetadata(invoice.metadata, entries) })
    },
  }

  function findClient(invoice: StripeInvoice): IxClient {
    const owner = ownerOf(invoice)
    const client = clientOf.get(owner) ?? ledger.addClient(invoice)
    clientOf.set(owner, client)
    return clients.get(client.id) ?? client
  }

  return ledger
}

/** The metadata of an issued document. */
export function recordOf({ id, type }: IxDocument, at: number): Record<string, string> {
  return {
    ix_state: 'synced',
    ix_id: String(id),
    ix_type: type,
    ix_created_at: new Date(at).toISOString(),
  }
}

/** Removes all metadata. */
export const nothing: Record<string, string> = {
  ix_state: '',
  ix_id: '',
  ix_type: '',
  ix_created_at: '',
  ix_attempted_at: '',
  ix_error: '',
}

function ownerOf({ customer, customer_account }: StripeInvoice): string {
  return typeof customer === 'string' ? customer : (customer_account ?? '')
}

/** The one that counts in Portugal, else a European one, else the first. */
function taxIdOf({ customer_tax_ids }: StripeInvoice): string | null {
  const ids = customer_tax_ids ?? []
  const best =
    ids.find(({ type }) => type === 'pt_nif') ??
    ids.find(({ type, value }) => type === 'eu_vat' && value.startsWith('PT')) ??
    ids.find(({ type }) => type === 'eu_vat') ??
    ids[0]
  return best?.value ?? null
}

/** A Portuguese one with or without its country prefix, as clients are typed in. */
function asTyped(taxId: string, hasCountry: boolean): string {
  const [, digits] = /^(?:PT)?(\d{9})$/.exec(taxId) ?? []
  return digits === undefined ? taxId : `${hasCountry ? 'PT' : ''}${digits}`
}

function daysOf({ status_transitions, created }: StripeInvoice): Pick<IxDocument, 'date' | 'due_date'> {
  const at = status_transitions.finalized_at ?? created
  return { date: formatDay(at), due_date: formatDay(at + 30 * 86_400) }
}

type Amounts = Pick<IxDocument, 'sum' | 'discount' | 'before_taxes' | 'taxes' | 'total'>

function amountsOf(invoice: StripeInvoice): Amounts {
  const { total, currency } = invoice
  const before = invoice.total_excluding_tax ?? total
  const discount = invoice.total_discount_amounts.reduce((all, { amount }) => all + amount, 0)
  const major = (amount: number) => toMajor(amount, currency)
  return {
    sum: major(before + discount),
    discount: major(discount),
    before_taxes: major(before),
    taxes: major(total - before),
    total: major(total),
  }
}

function itemsOf({ lines, currency }: StripeInvoice, { taxRates }: StripeAccount): IxItem[] {
  return lines.data.map(line => {
    const quantity = Number(line.quantity_decimal ?? line.quantity ?? 1) || 1
    const discount = line.discount_amounts.reduce((all, { amount }) => all + amount, 0)
    const tax = line.taxes.reduce((all, { amount }) => all + amount, 0)
    const included = line.taxes.some(({ tax_behavior }) => tax_behavior === 'inclusive') ? tax : 0
    const subtotal = line.subtotal - discount - included
    const percentages = line.taxes.map(tax => taxRates.get(tax.tax_rate_details.tax_rate)?.percentage ?? 0)
    return {
      name: line.description ?? 'Serviço',
      description: line.description ?? '',
      quantity: quantity.toFixed(1),
      unit_price: (toMajor(line.subtotal, currency) / quantity).toFixed(4),
      tax: {
        name: percentages.length > 0 ? 'IVA' : 'Isento',
        value: percentages.reduce((all, percentage) => all + percentage, 0),
      },
      subtotal: toMajor(subtotal, currency),
      tax_amount: toMajor(tax, currency),
      total: toMajor(subtotal + tax, currency),
    }
  })
}
