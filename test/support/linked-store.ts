/** A store that both systems' records are put into one by one, as the connector does it. */
import { pino } from 'pino'
import { type Claim, type Document, noClaim } from '../../src/document.ts'
import type { Invoice } from '../../src/invoice.ts'
import { type LinkRules, usualRules } from '../../src/linking/link.ts'
import { invoicesNamedBy } from '../../src/linking/related.ts'
import { completePaymentFacts } from '../../src/payment.ts'
import type { DocumentSource, Observation } from '../../src/sources.ts'
import { observationStamp, type WriteStore } from '../../src/store/store.ts'
import { applyObservations } from '../../src/sync/apply.ts'
import { type DeletionGuard, noGuard } from '../../src/sync/deletion-guard.ts'
import { relinkInvoices } from '../../src/sync/link-invoices.ts'
import { createDocumentRefetch, nothingSwept } from '../../src/sync/refetch-documents.ts'
import { createSetAside } from '../../src/sync/set-aside-documents.ts'
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
): Observation {
  const ofDocument = ({ ix_sync_state, ix_id, ix_status, ix_created_at }: Invoice) => {
    return { ix_sync_state, ix_id, ix_status, ix_created_at }
  }
  const invoice = makeInvoice(fields)
  const paid = payments.map(id => ({ id, amount_cents: 1, paid_at: null }))
  return {
    id: fields.id,
    customer_id: fields.customer_id,
    map: previous => ({
      invoice: { ...invoice, ...(previous && ofDocument(previous)) },
      lines: null,
      claim: { ...noClaim, ...claim },
      payment: completePaymentFacts(invoice, { payments: paid }),
    }),
  }
}

export const gone = ({ id, customer_id }: Given): Observation => ({ id, customer_id, map: null })

export function linkedStore(
  store: WriteStore,
  rules: LinkRules = usualRules,
  guard: DeletionGuard = noGuard,
) {
  const linking = { rules, guard }
  const relink = (documents: readonly Document[]) =>
    store.transaction(tx => {
      const wanted = { documents: documents.map(({ id }) => id), ...invoicesNamedBy(documents, rules) }
      return relinkInvoices(tx, wanted, 'test', linking)
    })
  const readInvoices = async (): Promise<Invoice[]> =>
    (await readAll(store)).map(({ summary }) => JSON.parse(summary))
  return {
    apply: (...observations: Observation[]) =>
      store.transaction(tx => applyObservations(tx, observations, nextStamp(), linking)),
    /** As a round over the documents stores what it read. */
    async save(...documents: Document[]) {
      await store.transaction(async tx => {
        await tx.saveDocuments(documents, nextStamp())
        const wanted = { documents: documents.map(({ id }) => id), ...invoicesNamedBy(documents, rules) }
        await relinkInvoices(tx, wanted, 'test', linking)
      })
    },
    relink,
    /** As it is fetched. */
    async saveClient(id: number, taxId: string | null) {
      const refetch = createDocumentRefetch({
        ...linking,
        ...{ store, log, nextStamp, onProgress: undefined },
        signal: new AbortController().signal,
        setAside: await createSetAside('ix', store, log),
      })
      const source = { ...silentSource, fetchClient: async () => ({ id, tax_id: taxId }) }
      const round = { source, swept: nothingSwept(), at: 0, stamp: 0, missedBefore: 0, recentFrom: null }
      await refetch.fetchClients(round, [id])
    },
    readInvoices,
    /** The documents that invoices have, by the invoices' IDs. */
    async ties(): Promise<Record<string, number | null>> {
      return Object.fromEntries((await readInvoices()).map(({ id, ix_id }) => [id, ix_id]))
    },
  }
}
