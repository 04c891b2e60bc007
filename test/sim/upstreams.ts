/** Models of both upstream systems: every state that a record ever had, and the moments between which it had it. */
import { integer, pick, type Random } from '../../sandbox/random.ts'
import { dayMs } from '../../src/domain/calendar.ts'
import { type Claim, noClaim } from '../../src/domain/document.ts'
import type { Invoice, InvoiceStatus, Line } from '../../src/domain/invoice.ts'
import type { Notification } from '../../src/sources/source.ts'
import { amountsOf } from './money.ts'

interface State {
  /** True times: from when on, and until when. */
  fromMs: number
  untilMs: number
  /** Whether the record fits; one that does not is set aside. */
  fits: boolean
}

export interface InvoiceState extends State {
  rev: number
  /** Null: the platform names no customer. */
  customer_id: string | null
  status: InvoiceStatus
  /** Whether the platform's status is none of the known ones. */
  isOdd: boolean
  total_cents: number
  currency: string
  tax_id: string | null
  claim: Claim
  /** Null until finalized. Now and then another invoice's. */
  number: string | null
  /** IDs. Now and then one pays several invoices. */
  payments: readonly string[]
  hasLines: boolean
  /** Whether the change to this state came without an event: only lists show it. */
  isSilent: boolean
  /** Whether it came with an event of its customer. */
  isRenamed: boolean
}

export interface ModelInvoice {
  id: string
  createdS: number
  states: InvoiceState[]
  deletedMs: number
  /** Whether its deletion came without an event. */
  isLostInSilence: boolean
  /** Whether an answer was that it is not there, though it is. */
  wasHidden: boolean
}

export interface DocumentState extends State {
  status: string
  reference: string | null
  uid: string | null
  date: string
  isArchived: boolean
  /** Whether a field does not fit: the rest is stored, and the field is set aside. */
  hasOddField: boolean
}

export interface ModelDocument {
  id: number
  clientId: number
  states: DocumentState[]
  deletedMs: number
}

export type ModelEvent = Notification & { atMs: number; rev: number }

export const customers = ['cus_a', 'cus_b', 'cus_c'] as const
/** By the client's id, and by the customer's. */
const taxIds = ['PT501964843', 'PT502011378'] as const

/** Entries of a page, at most. */
export interface PageSizes {
  invoices: number
  documents: number
  events: number
}

const never = Number.POSITIVE_INFINITY

export class Upstreams {
  readonly invoices = new Map<string, ModelInvoice>()
  readonly documents = new Map<number, ModelDocument>()
  readonly events: ModelEvent[] = []
  private revs = 0
  private paid = 0
  readonly random: Random
  /** Seconds that the platform's clock is ahead of the true time. */
  aheadS = 0
  pageSizes: PageSizes = { invoices: 6, documents: 3, events: 5 }
  /** Whether the key of the platform sees nothing. */
  isBlind = false
  /** True time at which it saw everything again: until then, nothing that was read shows that anything was read. */
  blindUntilMs = Number.NEGATIVE_INFINITY
  /** Whether pages are always full, and numbers of invoices are mostly equal. */
  isDense = false
  /** Tax IDs of clients that were corrected. */
  private readonly corrected = new Map<number, string | null>()
  private readonly clock: { nowMs: number }

  constructor(random: Random, clock: { nowMs: number }) {
    this.random = random
    this.clock = clock
  }

  current(invoice: ModelInvoice): InvoiceState | null {
    return invoice.deletedMs < never ? null : (invoice.states.at(-1) as InvoiceState)
  }

  currentDocument(document: ModelDocument): DocumentState | null {
    return document.deletedMs < never ? null : (document.states.at(-1) as DocumentState)
  }

  taxIdOf(clientId: number): string | null {
    const corrected = this.corrected.get(clientId)
    if (corrected !== undefined) return corrected
    return clientId === 0 ? null : (taxIds[clientId % taxIds.length] ?? null)
  }

  /** A client of documents gets the tax ID of another, or none. */
  correctTaxId(): string {
    const clientId = integer(this.random, 1, taxIds.length + 1)
    this.corrected.set(clientId, this.chance(0.2) ? null : pick(this.random, taxIds))
    return `client ${clientId} to ${this.taxIdOf(clientId)}`
  }

  get isTaxIdCorrected(): boolean {
    return this.corrected.size > 0
  }

  /** The key of the platform sees nothing from now on, or everything again. */
  setBlind(isBlind: boolean): void {
    this.isBlind = isBlind
    this.blindUntilMs = isBlind ? never : this.clock.nowMs
    for (const invoice of this.invoices.values()) invoice.wasHidden = true
  }

  /** Newest first. */
  listed(): ModelInvoice[] {
    return [...this.invoices.values()].filter(({ deletedMs }) => deletedMs === never).reverse()
  }

  /** One change of either system, at random; the name of it. */
  change(): string {
    this.clock.nowMs++
    const [name, run] = this.draw(changes)
    return `${name} ${run(this) ?? 'nothing'}`
  }

  /** The rest of one of the entries, which begin with their weights. */
  draw<Rest extends unknown[]>(table: readonly (readonly [number, ...Rest])[]): Rest {
    let left = this.random() * table.reduce((sum, [weight]) => sum + weight, 0)
    const drawn = table.find(([weight]) => {
      left -= weight
      return left < 0
    })
    return (drawn ?? table[0])?.slice(1) as Rest
  }

  chance(share: number): boolean {
    return this.random() < share
  }

  /** Mostly one of the last: what happens to the same record in a row is what matters. */
  pickOf<T>(list: readonly T[]): T | undefined {
    return pick(this.random, this.chance(0.6) ? list.slice(-2) : list)
  }

  /** Without an event, it is from before those that are kept. */
  createInvoice(status: InvoiceStatus = 'draft', createdMs = this.clock.nowMs, hasEvent = true): string {
    const id = `in_${String(this.invoices.size + 1).padStart(4, '0')}`
    const first: InvoiceState = {
      rev: ++this.revs,
      fromMs: this.clock.nowMs,
      untilMs: never,
      fits: true,
      customer_id: pick(this.random, customers),
      status,
      isOdd: false,
      total_cents: this.drawTotal(),
      currency: this.chance(0.75) ? 'eur' : 'usd',
      tax_id: this.chance(0.4) ? pick(this.random, taxIds) : null,
      claim: noClaim,
      number: status === 'draft' ? null : this.drawNumber(id),
      payments: status === 'paid' || this.chance(0.2) ? [this.drawPayment()] : [],
      hasLines: this.chance(0.8),
      isSilent: false,
      isRenamed: false,
    }
    const invoice = {
      id,
      createdS: Math.floor(createdMs / 1000),
      states: [first],
      deletedMs: never,
      isLostInSilence: false,
      wasHidden: this.isBlind,
    }
    this.invoices.set(id, invoice)
    if (hasEvent) this.notify('invoice.created', invoice)
    return id
  }

  createDocument(fields: Partial<DocumentState> = {}, clientId = 0): string {
    const id = 100 + this.documents.size
    const daysAgo = this.chance(0.7) ? integer(this.random, 0, 2) : integer(this.random, 3, 25)
    const first: DocumentState = {
      fromMs: this.clock.nowMs,
      untilMs: never,
      fits: true,
      status: pick(this.random, ['draft', 'final', 'settled']),
      reference: null,
      uid: null,
      date: new Date(this.clock.nowMs - daysAgo * dayMs).toISOString().slice(0, 10),
      isArchived: false,
      hasOddField: false,
      ...fields,
    }
    this.documents.set(id, { id, clientId, states: [first], deletedMs: never })
    return `document ${id} for ${first.reference}${first.uid === null ? '' : ` and ${first.uid}`}`
  }

  /** Replaces the current state of an invoice. */
  edit(invoice: ModelInvoice, fields: Partial<InvoiceState>, event: string | null): string {
    const before = invoice.states.at(-1) as InvoiceState
    before.untilMs = this.clock.nowMs
    const after = { ...before, isSilent: event === null, isRenamed: false, ...fields }
    invoice.states.push({ ...after, rev: ++this.revs, fromMs: this.clock.nowMs, untilMs: never })
    if (event !== null) this.notify(event, invoice)
    return `${invoice.id} to ${after.status} r${this.revs}`
  }

  editDocument(document: ModelDocument, fields: Partial<DocumentState>): string {
    const before = document.states.at(-1) as DocumentState
    before.untilMs = this.clock.nowMs
    document.states.push({ ...before, ...fields, fromMs: this.clock.nowMs, untilMs: never })
    return `document ${document.id} ${JSON.stringify(fields)}`
  }

  delete(invoice: ModelInvoice, isSilent = false): string {
    const last = invoice.states.at(-1) as InvoiceState
    last.untilMs = invoice.deletedMs = this.clock.nowMs
    invoice.isLostInSilence = isSilent
    if (!isSilent) this.notify('invoice.deleted', invoice)
    return invoice.id
  }

  deleteDocument(document: ModelDocument): string {
    const last = document.states.at(-1) as DocumentState
    last.untilMs = document.deletedMs = this.clock.nowMs
    return `document ${document.id}`
  }

  /** A customer's new name shows on drafts, with one event for all of them. */
  rename(customerId: string): string {
    const drafts = this.some(({ status, customer_id }) => status === 'draft' && customer_id === customerId)
    for (const draft of drafts) this.edit(draft, { isSilent: false, isRenamed: true }, null)
    const about = { invoice_id: null, customer_id: customerId, only: 'draft' as const }
    this.push('customer.updated', about)
    return customerId
  }

  /** A customer's invoices go to another, mostly without a word. */
  merge(from: string, to: string): string {
    const moved = this.some(({ customer_id }) => customer_id === from)
    for (const invoice of moved) this.edit(invoice, { customer_id: to }, null)
    if (this.chance(0.3)) this.push('customer.updated', { invoice_id: null, customer_id: to })
    return `${from} into ${to}: ${moved.length} invoices`
  }

  /** Invoices whose current state is like this. */
  some(fits: (state: InvoiceState) => boolean): ModelInvoice[] {
    return [...this.invoices.values()].filter(invoice => {
      const state = this.current(invoice)
      return state !== null && fits(state)
    })
  }

  someDocuments(fits: (state: DocumentState) => boolean): ModelDocument[] {
    return [...this.documents.values()].filter(document => {
      const state = this.currentDocument(document)
      return state !== null && fits(state)
    })
  }

  private drawTotal(): number {
    const drawn = this.random()
    if (drawn < 0.05) return 0
    return drawn < 0.15 ? -integer(this.random, 1, 90_000_000) : integer(this.random, 1, 40_000_000)
  }

  private notify(type: string, { id, states }: ModelInvoice): void {
    this.push(type, { invoice_id: id, customer_id: states.at(-1)?.customer_id ?? null })
  }

  private push(type: string, about: Pick<Notification, 'invoice_id' | 'customer_id' | 'only'>): void {
    const { nowMs } = this.clock
    this.events.push({
      id: `evt_${this.events.length}`,
      type,
      created: Math.floor(nowMs / 1000) + this.aheadS,
      atMs: nowMs,
      rev: this.revs,
      ...about,
    })
  }

  /** Mostly its own. */
  drawNumber(id: string): string {
    const others = [...this.invoices.values()].flatMap(({ states }) => states.at(-1)?.number ?? [])
    return (this.chance(this.isDense ? 0.5 : 0.15) && pick(this.random, others)) || `N-${id}`
  }

  /** Mostly a new one. */
  drawPayment(): string {
    const others = [...this.invoices.values()].flatMap(({ states }) => states.at(-1)?.payments ?? [])
    return (this.chance(0.25) && this.pickOf(others)) || `pi_${++this.paid}`
  }

  /** Whether another invoice has the payment too. */
  isShared(payment: string, invoiceId: string): boolean {
    return this.some(({ payments }) => payments.includes(payment)).some(({ id }) => id !== invoiceId)
  }

  /** What a document is to name: an invoice in one of the ways that companies write, or nothing. */
  drawNames(): Pick<DocumentState, 'reference' | 'uid'> & { clientId: number } {
    const invoice = this.pickOf(
      [...this.invoices.values()].filter(({ states }) => states.at(-1)?.status !== 'draft'),
    )
    const { payments = [], number = null, tax_id = null } = invoice?.states.at(-1) ?? {}
    const [name] = this.draw<[string | null]>([
      [5, invoice?.id ?? null],
      [3, this.pickOf(payments) ?? `pi_${this.paid + 1}`],
      [3, number],
    ])
    const own = (taxIds as readonly (string | null)[]).indexOf(tax_id)
    const clientId = this.chance(0.7) && own >= 0 ? taxIds.length + own : integer(this.random, 0, 2)
    const isUid = this.chance(0.2)
    return {
      reference: isUid ? pick(this.random, [null, 'PO 17', `pi_${this.paid}`]) : name,
      uid: isUid ? name : null,
      clientId,
    }
  }

  drawEdit(): Partial<InvoiceState> {
    return { total_cents: this.drawTotal(), hasLines: this.chance(0.8) }
  }

  drawClaim(): Claim {
    const now = new Date(this.clock.nowMs).toISOString()
    const free = this.someDocuments(({ reference }) => !reference?.startsWith('in_')).map(({ id }) => id)
    const document = this.pickOf(this.chance(0.7) ? free : [...this.documents.keys()]) ?? 999
    const drawn = this.random()
    if (drawn < 0.25) return { ...noClaim, state: 'creating', attempted_at: now }
    if (drawn < 0.35) return { ...noClaim, state: 'failed', error: 'no series' }
    if (drawn < 0.45) return { ...noClaim, state: 'ignored' }
    if (drawn < 0.5) return { ...noClaim, state: 'synced', ix_id: 999 }
    if (drawn < 0.9) return { ...noClaim, state: 'synced', ix_id: document, created_at: now }
    return noClaim
  }
}

const open = (state: InvoiceState) => state.status === 'open' || state.status === 'uncollectible'
const usual = ({ fits, isOdd }: InvoiceState) => fits && !isOdd

type Change = (model: Upstreams) => string | undefined

/** Weight, name and the change itself, which returns what it changed. */
const changes: readonly (readonly [number, string, Change])[] = [
  [5, 'create', model => model.createInvoice(model.chance(0.8) ? 'draft' : 'open')],
  [
    4,
    'finalize',
    model =>
      edit(
        model,
        ({ status }) => status === 'draft',
        ({ number }, { id }) => ({ status: 'open', number: number ?? model.drawNumber(id) }),
        'invoice.finalized',
      ),
  ],
  [4, 'pay', model => edit(model, open, pay(model), 'invoice.paid')],
  [
    2,
    'payment',
    model =>
      edit(
        model,
        ({ status }) => status === 'open' || status === 'paid',
        ({ payments }) => ({ payments: [...new Set([...payments, model.drawPayment()])] }),
        'invoice_payment.paid',
      ),
  ],
  [
    2,
    'payment canceled',
    model =>
      edit(
        model,
        ({ payments }) => payments.length > 0,
        ({ payments }, { id }) => {
          const canceled = payments.find(payment => model.isShared(payment, id)) ?? payments[0]
          return { payments: payments.filter(payment => payment !== canceled) }
        },
        'invoice.updated',
      ),
  ],
  [2, 'paid together', payTogether],
  [
    1,
    'number of a draft',
    model =>
      edit(
        model,
        ({ status }) => status === 'draft',
        (_, { id }) => ({ number: model.chance(0.3) ? null : model.drawNumber(id) }),
        'invoice.updated',
      ),
  ],
  [
    1,
    'tax id',
    model =>
      edit(
        model,
        ({ status }) => status === 'draft',
        () => ({ tax_id: model.chance(0.3) ? null : pick(model.random, taxIds) }),
        'invoice.updated',
      ),
  ],
  [1, 'void', model => move(model, open, 'void', 'invoice.voided')],
  [1, 'give up', model => move(model, ({ status }) => status === 'open', 'uncollectible', 'invoice.updated')],
  [
    3,
    'delete',
    model => {
      const draft = model.pickOf(model.some(({ status }) => status === 'draft'))
      return draft && model.delete(draft, model.chance(0.2))
    },
  ],
  [3, 'edit', model => edit(model, () => true, model.drawEdit(), 'invoice.updated')],
  [4, 'claim', model => edit(model, () => true, { claim: model.drawClaim() }, 'invoice.updated')],
  [2, 'claim twice', claimTwice],
  [1, 'edit in silence', model => edit(model, usual, model.drawEdit(), null)],
  [1, 'pay in silence', model => edit(model, state => usual(state) && open(state), pay(model), null)],
  [1, 'rename', model => model.rename(model.pickOf(customers) ?? '')],
  [
    1,
    'move',
    model => edit(model, () => true, { customer_id: model.pickOf(customers) ?? null }, 'invoice.updated'),
  ],
  [0.5, 'no customer', model => edit(model, usual, { customer_id: null }, 'invoice.updated')],
  [1, 'odd', model => edit(model, usual, { isOdd: true }, 'invoice.updated')],
  [1, 'misfit', model => edit(model, usual, { fits: false }, 'invoice.updated')],
  [
    3,
    'fit again',
    model =>
      edit(
        model,
        state => !usual(state) || state.customer_id === null,
        { fits: true, isOdd: false, customer_id: model.pickOf(customers) ?? null },
        'invoice.updated',
      ),
  ],
  [
    5,
    'document',
    model => {
      const { clientId, ...names } = model.drawNames()
      return model.createDocument(names, clientId)
    },
  ],
  [
    2,
    'free document',
    model =>
      model.createDocument({ reference: model.chance(0.5) ? null : 'PO 17' }, model.chance(0.5) ? 0 : 1),
  ],
  [
    5,
    'document status',
    model => {
      const document = model.pickOf(model.someDocuments(({ status }) => status !== 'canceled'))
      const next: Record<string, string> = { draft: 'final', final: 'settled', settled: 'canceled' }
      const status = document?.states.at(-1)?.status ?? ''
      return document && model.editDocument(document, { status: next[status] ?? 'canceled' })
    },
  ],
  [
    0.5,
    'documents settled',
    model =>
      model
        .someDocuments(({ status }) => status === 'final')
        .map(document => model.editDocument(document, { status: 'settled' }))
        .join(', '),
  ],
  [
    3,
    'document deleted',
    model => {
      const document = model.pickOf(model.someDocuments(() => true).slice(0, 3))
      return document && model.deleteDocument(document)
    },
  ],
  [1, 'document archived', model => editDocument(model, { isArchived: true })],
  [
    1,
    'document refers',
    model => {
      const { clientId, ...names } = model.drawNames()
      return editDocument(model, names)
    },
  ],
  [1, 'document misfit', model => editDocument(model, { fits: false })],
  [4, 'document field', model => editDocument(model, { hasOddField: true })],
  [
    12,
    'document field fits',
    model => {
      const document = model.pickOf(model.someDocuments(({ hasOddField }) => hasOddField))
      return document && model.editDocument(document, { hasOddField: false })
    },
  ],
  [
    1,
    'document fits',
    model => {
      const document = model.pickOf(model.someDocuments(({ fits }) => !fits))
      return document && model.editDocument(document, { fits: true })
    },
  ],
]

/** One payment pays two invoices, and mostly a document names it. */
function payTogether(model: Upstreams): string | undefined {
  const both = model.some(state => usual(state) && state.status !== 'draft').slice(-2)
  const payment = model.drawPayment()
  const steps = both.map(invoice => {
    const payments = model.current(invoice)?.payments ?? []
    return model.edit(invoice, { payments: [...new Set([...payments, payment])] }, 'invoice_payment.paid')
  })
  if (model.chance(0.7)) steps.push(model.createDocument({ reference: payment }, integer(model.random, 0, 2)))
  return steps.join(', ')
}

/** Two invoices claim a document that names none. */
function claimTwice(model: Upstreams): string | undefined {
  const document = model.pickOf(model.someDocuments(({ reference }) => !reference?.startsWith('in_')))
  const claimants = model.some(usual).slice(-3, -1)
  if (document === undefined) return undefined
  const claim = { ...noClaim, state: 'synced' as const, ix_id: document.id }
  return claimants.map(invoice => model.edit(invoice, { claim }, 'invoice.updated')).join(', ')
}

type Edit = (state: InvoiceState, invoice: ModelInvoice) => Partial<InvoiceState>

function edit(
  model: Upstreams,
  which: (state: InvoiceState) => boolean,
  fields: Partial<InvoiceState> | Edit,
  event: string | null,
): string | undefined {
  const invoice = model.pickOf(model.some(which))
  const state = invoice && model.current(invoice)
  if (!invoice || !state) return undefined
  return model.edit(invoice, typeof fields === 'function' ? fields(state, invoice) : fields, event)
}

const pay =
  (model: Upstreams): Edit =>
  ({ payments }) => ({ status: 'paid', payments: [...new Set([...payments, model.drawPayment()])] })

function move(
  model: Upstreams,
  which: (state: InvoiceState) => boolean,
  status: InvoiceStatus,
  event: string,
): string | undefined {
  return edit(model, which, { status }, event)
}

function editDocument(model: Upstreams, fields: Partial<DocumentState>): string | undefined {
  const document = model.pickOf(model.someDocuments(() => true))
  return document && model.editDocument(document, fields)
}

/** The invoice that a state is to be stored as, without its document. The name shows which state it is. */
export function toInvoice({ id, createdS }: ModelInvoice, state: InvoiceState): Invoice {
  const { rev, customer_id, total_cents, currency, status, tax_id, number } = state
  return {
    id,
    number,
    // One for all: an issued invoice keeps the name that it was issued with.
    display_name: 'Ana',
    customer_name: `r${rev}`,
    customer_id: customer_id ?? '',
    customer_email: null,
    company_name: null,
    customer_tax_id: tax_id,
    issued_at: new Date(createdS * 1000).toISOString(),
    ix_created_at: null,
    ...amountsOf(state),
    discount_cents: 0,
    tax_percent: null,
    total_cents,
    currency,
    status,
    ix_sync_state: 'not_synced',
    ix_id: null,
    ix_status: null,
  }
}

export function toLines({ rev, total_cents, currency, hasLines }: InvoiceState): Line[] | null {
  if (!hasLines) return null
  const amounts = { subtotal_cents: total_cents, unit_amount_cents: total_cents, amount_cents: total_cents }
  return [
    {
      id: `il_${rev}`,
      description: `r${rev}`,
      quantity: 1,
      discount_cents: 0,
      discount_percent: 0,
      currency,
      ...amounts,
    },
  ]
}

/** The state that an invoice is shown in, by its name. */
export function revOf(customerName: string | null): number {
  return Number((customerName ?? '').slice(1))
}
