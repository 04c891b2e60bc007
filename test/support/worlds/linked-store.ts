/** A store that both systems' records are put into one by one, as the connector does it. */
import { pino } from 'pino'
import { type Claim, type Document, noClaim } from '../../../src/domain/document.ts'
import type { Invoice } from '../../../src/domain/invoice.ts'
import { defaultRules, type LinkRules } from '../../../src/domain/link/link.ts'
import { invoicesNamedBy } from '../../../src/domain/link/related.ts'
import { completePaymentFacts } from '../../../src/domain/payment.ts'
import { nothingUnread } from '../../../src/sources/platform-invoice.ts'
import type { DocumentSource, InvoiceAnswer } from '../../../src/sources/source.ts'
import { observationStamp, type WriteStore } from '../../../src/store/store.ts'
import { createQueue } from '../../../src/sync/concurrency.ts'
import type { DeletionGuard } from '../../../src/sync/deletion-guard.ts'
import { RoundCounts } from '../../../src/sync/documents/document-round.ts'
import { fetchClients } from '../../../src/sync/documents/fetch-clients.ts'
import { applyAnswers } from '../../../src/sync/invoices/apply-answers.ts'
import { relinkInvoices } from '../../../src/sync/link-invoices.ts'
import { noGuard } from './no-guard.ts'
import { makeInvoice } from './records.ts'
import { readAll } from './sync.ts'

const log = pino({ level: 'silent' })

let stamp = observationStamp(Date.UTC(2026, 2, 10))
/** Later than all before. */
export const nextStamp = () => stamp++

export function makeDocument(id: number, fields: Partial<Document> = {}): Document {
  const usual = {
    type: 'Invoice',
    status: 'settled',
    number: '6/G',
    date: '2026-03-03',
    total: '123.00',
  } as const
  return { id, ...usual, reference: null, currency: 'Euro', client_id: null, ...fields }
}

const nothing = () => Promise.reject(new Error('not asked for here'))
const silentSource: DocumentSource = {
  system: 'ix',
  name: 'InvoiceXpress',
  streamPrefix: 'ix',
  listDocuments: nothing,
  fetchDocument: nothing,
  fetchClient: nothing,
  fetchRelations: nothing,
}

type Given = Partial<Invoice> & Pick<Invoice, 'id' | 'customer_id'>

/** As the payment platform is asked for it: with what is recorded there, and with its payments. */
export function observe(
  fields: Given,
  claim: Partial<Claim> = {},
  payments: readonly string[] = [],
): InvoiceAnswer {
  const invoice = makeInvoice(fields)
  const { ix_sync_state, ix_id, ix_status, ix_created_at, ...billed } = invoice
  const paid = payments.map(id => ({ id, amount_cents: 1, paid_at: null }))
  return {
    id: fields.id,
    customer_id: fields.customer_id,
    found: {
      invoice: billed,
      lines: null,
      claim: { ...noClaim, ...claim },
      payment: completePaymentFacts(invoice, { payments: paid }),
      unread: nothingUnread,
    },
  }
}

export const gone = ({ id, customer_id }: Given): InvoiceAnswer => ({ id, customer_id, found: null })

export function linkedStore(
  store: WriteStore,
  rules: LinkRules = defaultRules,
  guard: DeletionGuard = noGuard,
) {
  const linking = { rules, guard }
  const relink = (documents: readonly Document[]) =>
    store.transaction(tx => {
      const wanted = { documents: documents.map(({ id }) => id), ...invoicesNamedBy(documents, rules) }
      return relinkInvoices(tx, wanted, 'test', { ...linking, now: Date.now() })
    })
  const readInvoices = async (): Promise<Invoice[]> =>
    (await readAll(store)).map(({ summary }) => JSON.parse(summary))
  return {
    apply: (...answers: InvoiceAnswer[]) =>
      store.transaction(async tx => {
        const stamps = { askedAt: nextStamp(), answeredAt: nextStamp() }
        const stamped = answers.map(answer => ({ ...answer, ...stamps }))
        const options = { ...linking, now: Date.now(), cause: null, isPartial: false }
        return (await applyAnswers(tx, stamped, options)).applied
      }),
    /** As a round over the documents stores what it read. */
    async save(...documents: Document[]) {
      await store.transaction(async tx => {
        await tx.saveDocuments(documents, nextStamp())
        const wanted = { documents: documents.map(({ id }) => id), ...invoicesNamedBy(documents, rules) }
        await relinkInvoices(tx, wanted, 'test', { ...linking, now: Date.now() })
      })
    },
    relink,
    /** As it is fetched. */
    async saveClient(id: number, taxId: string | null) {
      const context = {
        ...{ ...linking, system: 'ix', store, log, nextStamp, enqueue: createQueue() },
        ...{ signal: new AbortController().signal, forbidden: new Set<string>(), reportProgress: () => {} },
      }
      const source = { ...silentSource, fetchClient: async () => ({ id, tax_id: taxId }) }
      const begun = { at: 0, stamp: 0, missedBefore: 0, aside: new Set<string>(), recentFrom: null }
      await fetchClients(context, { ...begun, source, counts: new RoundCounts() }, [id])
    },
    readInvoices,
    /** The documents that invoices have, by the invoices' IDs. */
    async ties(): Promise<Record<string, number | null>> {
      return Object.fromEntries((await readInvoices()).map(({ id, ix_id }) => [id, ix_id]))
    },
  }
}
