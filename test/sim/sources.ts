/** The two sources of the connector over the models: each call is a point at which others go on, and at which it may fail. */
import { integer } from '../../sandbox/random.ts'
import type { Document } from '../../src/domain/document.ts'
import { invoiceXpressIdentity } from '../../src/sources/invoicexpress/source-identity.ts'
import { nothingUnread } from '../../src/sources/platform-invoice.ts'
import {
  type BillingSource,
  type DocumentSource,
  type InvoiceAnswer,
  SourceError,
  UnfitRecord,
} from '../../src/sources/source.ts'
import { stripeIdentity } from '../../src/sources/stripe/source-identity.ts'
import { chargeOf, factsOf, notesOf, writtenOf } from './money.ts'
import {
  type DocumentState,
  type InvoiceState,
  type ModelDocument,
  type ModelInvoice,
  toInvoice,
  toLines,
  type Upstreams,
} from './upstreams.ts'
import type { Process, VirtualTime } from './virtual-time.ts'

export interface Faults {
  /** Share of calls that fail; 0 once the faults are over. */
  sourceRate: number
  storeRate: number
}

/** Seconds of the platform's clock that events may be listed in; older ones are gone. */
const keptS = 30 * 86_400

export function createSources(
  model: Upstreams,
  time: VirtualTime,
  faults: Faults,
  process: Process,
): { billing: BillingSource; documents: DocumentSource } {
  const { random } = time
  const chance = (share: number) => random() < share

  /** The answer is the truth of one moment between the question and its arrival. */
  async function call<T>(label: string, answer: () => T): Promise<T> {
    await time.wait(process, label)
    if (chance(faults.sourceRate)) throw drawFailure()
    const given = answer()
    if (faults.sourceRate > 0 && chance(0.4)) await time.wait(process, `${label}: answer`)
    if (chance(faults.sourceRate / 2)) throw new SourceError('timeout', 'the answer did not arrive')
    return given
  }

  function drawFailure(): SourceError {
    const drawn = random()
    if (drawn < 0.3) return new SourceError('timeout', 'no answer')
    if (drawn < 0.6) return new SourceError('failed', '429', { retryAfter: 2 })
    return new SourceError('failed', 'HTTP 500')
  }

  function observe(invoice: ModelInvoice, state: InvoiceState): InvoiceAnswer {
    return {
      id: invoice.id,
      customer_id: state.customer_id,
      found: map(invoice, state),
    }
  }

  function map(invoice: ModelInvoice, state: InvoiceState): InvoiceAnswer['found'] {
    if (state.isOdd) return { refusal: 'unknown_status' }
    const { ix_sync_state, ix_id, ix_status, ix_created_at, ...billed } = toInvoice(invoice, state)
    return {
      invoice: billed,
      lines: toLines(state),
      claim: state.claim,
      payment: factsOf(invoice, state),
      unread: nothingUnread,
    }
  }

  const billing: BillingSource = {
    ...stripeIdentity,
    eventsKeptDays: 30,
    listInvoices: (after, filter = {}) =>
      call(
        `list${after === null ? '' : ` after ${after}`}${filter.status ? ` ${filter.status}` : ''}`,
        () => {
          const { customerId, status, from = 0, before = Number.POSITIVE_INFINITY } = filter
          const all = model.isBlind ? [] : model.listed()
          const place = after === null ? -1 : all.findIndex(({ id }) => id === after)
          if (after !== null && place === -1 && !model.isBlind)
            throw new SourceError('missing', 'there is no such cursor')
          const matching = all.slice(place + 1).filter(invoice => {
            const state = model.current(invoice)
            return (
              (customerId === undefined || state?.customer_id === customerId) &&
              (status === undefined || state?.status === status) &&
              invoice.createdS >= from &&
              invoice.createdS < before
            )
          })
          // Pages shrink and grow between two requests.
          const most = model.pageSizes.invoices
          const size = faults.sourceRate > 0 && !model.isDense ? integer(random, 1, most) : most
          const page = matching.slice(0, size)
          const states = page.map(invoice => ({ invoice, state: model.current(invoice) as InvoiceState }))
          const nameless = chance(faults.sourceRate / 10) ? 1 : 0
          return {
            answers: states
              .filter(({ state }) => state.fits)
              .map(({ invoice, state }) => observe(invoice, state)),
            unfit: states
              .filter(({ state }) => !state.fits)
              .map(({ invoice }) => ({ id: invoice.id, reason: 'lines' })),
            nameless,
            next: matching.length > size ? (page.at(-1)?.id ?? null) : null,
            began: page[0]?.createdS ?? 0,
            reached: page.at(-1)?.createdS ?? 0,
          }
        },
      ),
    fetchInvoice: (id, customerId) =>
      call(`fetch ${id}`, () => {
        const invoice = model.invoices.get(id)
        const state = invoice && model.current(invoice)
        if (!invoice || !state || model.isBlind) return { id, customer_id: customerId, found: null }
        // A key may not see what is there: only of a draft is that believed, and this one never was one.
        if (invoice.states[0]?.status !== 'draft' && chance(faults.sourceRate / 5)) {
          invoice.wasHidden = true
          return { id, customer_id: customerId, found: null }
        }
        if (!state.fits) throw new UnfitRecord('lines')
        return observe(invoice, state)
      }),
    listNotifications: (since, after) =>
      call('events', () => {
        const nowS = Math.floor(time.nowMs / 1000) + model.aheadS
        const listed = model.events
          .filter(({ created }) => !model.isBlind && created >= since && created > nowS - keptS)
          .reverse()
        const place = after === null ? -1 : listed.findIndex(({ id }) => id === after)
        if (after !== null && place === -1) throw new SourceError('missing', 'there is no such cursor')
        const end = place + 1 + model.pageSizes.events
        const page = listed.slice(place + 1, end)
        const next = end < listed.length ? (page.at(-1)?.id ?? null) : null
        return { notifications: page, next, newest: page[0]?.created ?? null }
      }),
    identify: () => call('identify', () => ({ id: 'acct_1', mode: 'test' as const })),
  }

  function toDocument(document: ModelDocument, state: DocumentState): Document {
    const { id, clientId, states } = document
    const { status, reference, uid, date, hasOddField } = state
    const fixed = {
      type: 'Invoice',
      number: `d${states.indexOf(state)}`,
      ...writtenOf(chargeOf(model, document)),
      ...(hasOddField && { left_out: 'an odd field' }),
    } as const
    const names = { reference, ...(uid !== null && { uid }) }
    return { id, status, ...names, date, client_id: clientId === 0 ? null : clientId, ...fixed }
  }

  const documents: DocumentSource = {
    ...invoiceXpressIdentity,
    listDocuments: ({ from = '', to = '9999', statuses, isArchived = false }, page) =>
      call(`documents ${from} ${statuses ?? ''}${isArchived ? ' archived' : ''} page ${page}`, () => {
        const listed = model
          .someDocuments(state => {
            const word = state.status === 'final' ? 'sent' : state.status
            return (
              state.date >= from &&
              state.date <= to &&
              state.isArchived === isArchived &&
              (statuses === undefined || statuses.includes(word))
            )
          })
          .reverse()
        const size = model.pageSizes.documents
        const some = listed.slice((page - 1) * size, page * size)
        const states = some.map(document => ({ document, state: document.states.at(-1) as DocumentState }))
        return {
          documents: states
            .filter(({ state }) => state.fits)
            .map(({ document, state }) => toDocument(document, state)),
          misfits: states
            .filter(({ state }) => !state.fits)
            .map(({ document }) => ({ id: document.id, reason: 'odd' })),
          pages: Math.ceil(listed.length / size),
          total: listed.length,
        }
      }),
    fetchDocument: id =>
      call(`document ${id}`, () => {
        const document = model.documents.get(id)
        const state = document && model.currentDocument(document)
        if (!document || !state) return null
        if (!state.fits) throw new SourceError('failed', 'odd', { scope: 'record' })
        return toDocument(document, state)
      }),
    fetchClient: id =>
      call(`client ${id}`, () => {
        if (chance(faults.sourceRate / 4)) throw new SourceError('failed', 'forbidden', { scope: 'access' })
        return { id, tax_id: model.taxIdOf(id) }
      }),
    fetchRelations: id =>
      call(`relations ${id}`, () => {
        const document = model.documents.get(id)
        return document ? { documents: notesOf(id, chargeOf(model, document)), has_qr: false } : null
      }),
  }
  return { billing, documents }
}
