/** Holds the documents and clients of the local InvoiceXpress, and records metadata at Stripe. */

import { decimalsOf } from '../../src/domain/money.ts'
import { integer, type Random } from '../random.ts'
import type { StripeAccount } from '../stripe/account.ts'
import { mergeMetadata, type StripeInvoice } from '../stripe/objects.ts'
import { amountsOf, itemsOf } from './amounts.ts'
import {
  currencyOf,
  formatDay,
  type IxClient,
  type IxDocument,
  type IxStatus,
  type IxType,
  ixTypes,
  toCents,
  toEuros,
  toMajor,
  toPay,
} from './objects.ts'

/** A change of a document. Lists show it after a delay. */
export interface Change {
  id: number
  /** Real time by `performance.now()`, because a client waits in real time. */
  at: number
  /** The document before the change. Null for a new document. */
  before: IxDocument | null
}

export interface Draft {
  type?: IxType
  status?: IxStatus
  reference?: string | null
  proprietary_uid?: string | null
  client?: IxClient
  /**
   * Default: the next number in the type's series. A second copy takes the number of its original. A number can also come from another
   * type's series.
   */
  sequence_number?: string
}

export interface Ledger {
  readonly account: StripeAccount
  readonly random: Random
  /** Documents by id, in the order of ids. */
  readonly documents: Map<number, IxDocument>
  readonly clients: Map<number, IxClient>
  readonly changes: Change[]
  /** Document ids by invoice id. */
  readonly ofInvoice: Map<string, number>
  /** Ids of the documents that credit notes, debit notes and receipts refer to, by their own ids. */
  readonly owners: Map<number, number>
  /**
   * Before this call, documents change without a record. Afterwards each change is added to `changes`, and new metadata causes events at
   * Stripe.
   */
  open(): void
  /** Adds a document of an invoice, with the invoice's id as reference, amounts in euros and the day of finalization. */
  issue(invoice: StripeInvoice, draft?: Draft): IxDocument
  put(document: IxDocument): IxDocument
  /** Replaces a document by one with a higher total. `by` is in the smallest unit of its invoice's currency. */
  raise(document: IxDocument, by: number): IxDocument
  /** Removes a document so that no list or request finds it. */
  remove(id: number): void
  addClient(invoice: StripeInvoice): IxClient
  /** Returns the id that follows the last one, without drawing a random number. */
  nextId(): number
  /** Returns a new id after a random gap. */
  skipId(): number
  number(type: IxType): string
  record(invoiceId: string, entries: Record<string, string>): void
}

export function createLedger(account: StripeAccount, random: Random): Ledger {
  const documents = new Map<number, IxDocument>()
  const clients = new Map<number, IxClient>()
  const clientOf = new Map<string, IxClient>()
  const changes: Change[] = []
  const numbers = new Map<IxType, number>()
  /** Percentage of tax that a client withholds, by client id. */
  const withholders = new Map<number, string>()
  let companies = 0
  let isOpen = false
  let lastId = 48_000_000
  let lastClient = 7_100_000

  /** Ids rise with gaps, because all accounts of InvoiceXpress share one sequence of ids. */
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
      const { id, name, country, fiscal_id } = draft.client ?? findClient(invoice)
      const { sequence_number = status === 'draft' ? null : ledger.number(type) } = draft
      return ledger.put({
        id: skipId(),
        status,
        archived: false,
        type,
        sequence_number,
        ...daysOf(invoice),
        reference,
        proprietary_uid,
        observations: null,
        ...amountsOf(invoice, retentionOf(id, type, invoice)),
        client: { id, name, country, fiscal_id },
        items: itemsOf(invoice, account),
        tax_exemption: invoice.total === invoice.total_excluding_tax ? 'M07' : null,
      })
    },
    put(document) {
      keep(document.id)
      documents.set(document.id, document)
      return document
    },
    raise(document, by) {
      const { multicurrency } = document
      const code = multicurrency?.code ?? 'eur'
      const more = (amount: number) => toCents(amount + toEuros(by, code)) / 100
      const raised = { ...document, sum: more(document.sum), before_taxes: more(document.before_taxes) }
      return ledger.put({
        ...raised,
        total: toPay(raised),
        ...(multicurrency && {
          multicurrency: {
            ...multicurrency,
            total: toMajor(Math.round(multicurrency.total * 10 ** decimalsOf(code)) + by, code),
          },
        }),
      })
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
        name: companyOf(invoice) ?? invoice.customer_name ?? 'Consumidor final',
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
      if (/^(PT)?5\d{8}$/.test(taxId ?? '')) countCompany(client.id)
      return client
    },
    nextId() {
      lastId++
      return lastId
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

  /** Some Portuguese companies withhold tax when they pay for services. Every fourth company does so here. */
  function countCompany(clientId: number): void {
    companies++
    if (companies % 4 === 2) withholders.set(clientId, companies % 8 === 2 ? '25' : '11.5')
  }

  function retentionOf(clientId: number, type: IxType, { total }: StripeInvoice): string | null {
    const isCharge = type === 'Invoice' || type === 'InvoiceReceipt'
    return isCharge && total > 0 ? (withholders.get(clientId) ?? null) : null
  }

  function companyOf({ customer }: StripeInvoice): string | undefined {
    const company = typeof customer === 'string' ? account.customers.get(customer) : undefined
    return company === undefined || company.deleted ? undefined : company.business_name
  }

  function findClient(invoice: StripeInvoice): IxClient {
    const owner = ownerOf(invoice)
    const client = clientOf.get(owner) ?? ledger.addClient(invoice)
    clientOf.set(owner, client)
    return clients.get(client.id) ?? client
  }

  return ledger
}

export function recordOf({ id, type }: IxDocument, at: number): Record<string, string> {
  return {
    ix_state: 'synced',
    ix_id: String(id),
    ix_type: type,
    ix_created_at: new Date(at).toISOString(),
  }
}

/** An empty text removes a metadata entry. */
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

/** Chooses the Portuguese tax ID, otherwise a European one, otherwise the first. */
function taxIdOf({ customer_tax_ids }: StripeInvoice): string | null {
  const ids = customer_tax_ids ?? []
  const best =
    ids.find(({ type }) => type === 'pt_nif') ??
    ids.find(({ type, value }) => type === 'eu_vat' && value.startsWith('PT')) ??
    ids.find(({ type }) => type === 'eu_vat') ??
    ids[0]
  return best?.value ?? null
}

/** Writes a Portuguese tax ID with or without its country prefix, because clients are typed in by hand. */
function asTyped(taxId: string, hasCountry: boolean): string {
  const [, digits] = /^(?:PT)?(\d{9})$/.exec(taxId) ?? []
  return digits === undefined ? taxId : `${hasCountry ? 'PT' : ''}${digits}`
}

function daysOf({ status_transitions, created }: StripeInvoice): Pick<IxDocument, 'date' | 'due_date'> {
  const at = status_transitions.finalized_at ?? created
  return { date: formatDay(at), due_date: formatDay(at + 30 * 86_400) }
}
