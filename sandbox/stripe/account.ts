/** The sandbox's Stripe account with a simulated clock. The same seed and calls give the same data. */
import { createOrderedIds } from '../ordered-ids.ts'
import { createRandom, inOnePiece, letters, pick } from '../random.ts'
import type { AccountOptions, StripeAccount } from './account-contract.ts'
import { type ChangeKind, changeableFrom, isListed, kindFor } from './changes.ts'
import { createPayer, createTaxRates, customerOf, type Payer, rename } from './customers.ts'
import { addLine, createDraft, finalize, markUncollectible, voidInvoice } from './invoices.ts'
import type { Plan } from './lines.ts'
import {
  formerMetadata,
  makeEvent,
  mergeMetadata,
  onTheWire,
  type StripeCustomer,
  type StripeEvent,
  type StripeInvoice,
} from './objects.ts'
import {
  createTerms,
  creditable,
  creditNoteOf,
  creditPart,
  pay,
  payPart,
  settle,
  stayOpen,
  type Terms,
  takeOver,
} from './settlement.ts'

export type { AccountOptions, StripeAccount }

/** The start time is fixed, so that the same seed also gives the same dates. */
const defaultNow = Date.UTC(2026, 9, 28, 9, 0, 0) / 1000
const day = 86_400
/** Average time between two changes, in seconds. */
const pause = 1_800

export function createAccount(options: AccountOptions = {}): StripeAccount {
  const { seed = 1, invoices: count = 200, now = defaultNow, days = 730, lines } = options
  const span = days * day
  const { customers: payerCount = Math.max(12, Math.ceil(count / 25)) } = options
  const random = createRandom(seed)
  const coupons = createRandom(seed ^ 0x2545f491)
  const settling = createRandom(seed ^ 0x7f4a7c15)
  const start = now - span
  const [rates, taxations] = createTaxRates(random, start)
  const taxRates = new Map(rates.map(rate => [rate.id, rate]))
  const payers = Array.from({ length: Math.max(1, payerCount) }, (_, index) =>
    createPayer(random, index, start),
  )
  const payerById = new Map(payers.map(payer => [payer.customer?.id ?? payer.account, payer]))
  const customers = new Map<string, StripeCustomer>()
  const invoices = new Map<string, StripeInvoice>()
  const events: StripeEvent[] = []
  const order = createOrderedIds()
  /** Plan and terms of each draft, by invoice id. */
  const prospects = new Map<string, { plan: Plan; terms: Terms }>()
  /** Ids of invoices that can still change, by status. */
  const ids = { draft: [] as string[], open: [] as string[], uncollectible: [] as string[] }
  let serial = 0

  function draft(payer: Payer, created: number, chosen?: Partial<Terms>): StripeInvoice {
    const terms = { ...createTerms(settling, serial, payer.price), ...chosen }
    const [invoice, plan] = createDraft(random, coupons, {
      payer,
      serial: serial++,
      created,
      terms,
      taxations,
      rates: taxRates,
      ...(lines !== undefined && { lines }),
    })
    prospects.set(invoice.id, { plan, terms })
    return invoice
  }

  function put(invoice: StripeInvoice): StripeInvoice {
    const before = invoices.get(invoice.id)
    if (before === undefined) order.add(invoice)
    if (before?.status !== invoice.status) {
      if (before !== undefined) forget(before)
      if (isListed(invoice.status)) ids[invoice.status].push(invoice.id)
    }
    if (invoice.status !== 'draft') prospects.delete(invoice.id)
    invoices.set(invoice.id, invoice)
    return invoice
  }

  function forget({ id, status }: StripeInvoice): void {
    if (isListed(status)) ids[status].splice(ids[status].indexOf(id), 1)
  }

  function emit(type: string, object: object, previous?: Record<string, unknown>, names = random): void {
    const id = inOnePiece('evt_1', letters(names, 17), events.length.toString(36).padStart(6, '0'))
    events.push(makeEvent(id, type, account.clock, object, previous))
  }

  function announce(invoice: StripeInvoice, ...types: string[]): void {
    for (const type of types) emit(`invoice.${type}`, onTheWire(invoice))
  }

  const payerOf = (invoice: StripeInvoice) =>
    payerById.get((invoice.customer as string | null) ?? invoice.customer_account) as Payer

  const steps: Record<Exclude<ChangeKind, 'create'>, (invoice: StripeInvoice) => void> = {
    finalize(invoice) {
      const payer = payerOf(invoice)
      announce(put(finalizeAt(invoice, payer, account.clock)), 'finalized')
      followBalance(payer)
    },
    pay: invoice => announce(put(pay(invoice, account.clock)), 'updated', 'paid', 'payment_succeeded'),
    void: invoice => announce(put(voidInvoice(invoice, account.clock)), 'voided'),
    uncollectible: it => announce(put(markUncollectible(it, account.clock)), 'marked_uncollectible'),
    delete(invoice) {
      invoices.delete(invoice.id)
      order.remove(invoice)
      forget(invoice)
      prospects.delete(invoice.id)
      // An `invoice.deleted` event has the status `deleted`. No invoice that a request can read has this status.
      emit('invoice.deleted', { ...onTheWire(invoice), status: 'deleted' })
    },
    update(invoice) {
      const plan = prospects.get(invoice.id)?.plan
      const longer = plan === undefined ? invoice : addLine(random, coupons, invoice, plan, taxRates)
      const metadata = { ...invoice.metadata, revisao: letters(random, 6) }
      const { subtotal, total } = invoice
      const previous = { metadata: { revisao: invoice.metadata.revisao ?? null }, subtotal, total }
      emit('invoice.updated', onTheWire(put({ ...longer, metadata })), previous)
    },
    pay_part(invoice) {
      if (invoice.amount_remaining === 0) return
      const { payments } = put(payPart(invoice, Math.ceil(invoice.amount_remaining / 2), account.clock))
      emit('invoice_payment.paid', payments.data[0] ?? {})
    },
    credit: invoice => credit(invoice, creditable(invoice)),
    credit_whole: invoice => credit(invoice, invoice.total - invoice.post_payment_credit_notes_amount),
  }

  function credit(invoice: StripeInvoice, amount: number): void {
    if (amount <= 0) return
    put(creditPart(invoice, amount))
    emit('credit_note.created', creditNoteOf(invoice, amount, letters(settling, 20)))
  }

  function finalizeAt(invoice: StripeInvoice, payer: Payer, at: number): StripeInvoice {
    const { terms } = prospects.get(invoice.id) as { terms: Terms }
    return finalize(random, invoice, { payer, terms, at })
  }

  /** Stores the customer's new balance and applies it to the customer's drafts. */
  function followBalance({ customer, balance }: Payer): void {
    const stored = customer === null ? undefined : customers.get(customer.id)
    if (stored === undefined || stored.deleted || stored.balance === balance) return
    const changed = { ...stored, balance }
    customers.set(stored.id, changed)
    ;(payerById.get(stored.id) as Payer).customer = changed
    for (const id of ids.draft) {
      const draft = invoices.get(id) as StripeInvoice
      if (draft.customer === stored.id) put(takeOver(draft, balance))
    }
    emit('customer.updated', changed, { balance: stored.balance }, settling)
  }

  const account: StripeAccount = {
    clock: now,
    customers,
    invoices,
    taxRates,
    events,
    order,
    advance(seconds) {
      const until = account.clock + Math.max(0, Math.floor(seconds))
      while (nextChange <= until) {
        account.clock = Math.max(account.clock, nextChange)
        happen()
        // Every fourth change falls into the same second as the change before.
        nextChange += random() < 0.25 ? 0 : Math.ceil(-Math.log(1 - random()) * pause)
      }
      account.clock = until
    },
    change(kind, invoiceId) {
      if (kind === 'create') {
        const living = payers.filter(({ isDeleted }) => !isDeleted)
        const invoice = put(draft(pick(random, living.length === 0 ? payers : living), account.clock))
        announce(invoice, 'created')
        return invoice.id
      }
      const id = invoiceId ?? find(kind)
      const invoice = invoices.get(id)
      if (invoice === undefined) throw new Error(`There is no invoice ${id} to ${kind}.`)
      if (!changeableFrom[kind].includes(invoice.status))
        throw new Error(`Invoice ${id} is ${invoice.status}: it does not ${kind}.`)
      steps[kind](invoice)
      return id
    },
    createInvoice(customerId, daysUntilDue) {
      const payer = payerById.get(customerId)
      if (payer === undefined || payer.isDeleted) throw new Error(`There is no customer ${customerId}.`)
      const plain = { adjustment: 0, parts: 1, isPartlyPaid: false, isPaidTogether: false }
      const never = { creditedBefore: 0, creditedAfter: 0, isAutomatic: false }
      const invoice = put(draft(payer, account.clock, { ...plain, ...never, daysUntilDue }))
      announce(invoice, 'created')
      return invoice.id
    },
    renameCustomer(customerId, name) {
      const customer = customers.get(customerId)
      if (customer === undefined || customer.deleted) throw new Error(`There is no customer ${customerId}.`)
      const [renamed, former] = rename(customer, name)
      customers.set(customerId, renamed)
      ;(payerById.get(customerId) as Payer).customer = renamed
      for (const id of ids.draft) {
        const invoice = invoices.get(id) as StripeInvoice
        if (invoice.customer === customerId) put({ ...invoice, customer_name: name })
      }
      emit('customer.updated', renamed, former)
    },
    setMetadata(invoiceId, entries) {
      const invoice = invoices.get(invoiceId)
      if (invoice === undefined) throw new Error(`There is no invoice ${invoiceId}.`)
      const metadata = mergeMetadata(invoice.metadata, entries)
      const before = formerMetadata(invoice.metadata, metadata)
      if (Object.keys(before).length === 0) return
      emit('invoice.updated', onTheWire(put({ ...invoice, metadata })), { metadata: before })
    },
  }

  /** Returns the id of an invoice that fits the change. Creates one when none fits. */
  function find(kind: Exclude<ChangeKind, 'create'>): string {
    const fitting = changeableFrom[kind].filter(isListed).flatMap(status => ids[status])
    if (fitting.length > 0) return pick(random, fitting)
    const id = account.change('create')
    return changeableFrom[kind].includes('draft') ? id : account.change('finalize', id)
  }

  function happen(): void {
    const chance = random()
    if (chance < 0.03) {
      const living = [...customers.values()].filter(customer => !customer.deleted)
      if (living.length > 0)
        account.renameCustomer(pick(random, living).id, `Nova Firma ${letters(random, 5)}`)
    } else if (chance < 0.05) {
      // An upcoming invoice is a preview without an id. It never becomes an invoice.
      const { id: _, ...preview } = draft(pick(random, payers), account.clock)
      prospects.delete(_)
      emit('invoice.upcoming', onTheWire(preview as StripeInvoice))
    } else account.change(kindFor((chance - 0.05) / 0.95))
  }

  /** Brings a draft to its status at the start. Young invoices are more likely to be drafts or open. */
  function grow(draft: StripeInvoice, payer: Payer): StripeInvoice {
    const { terms } = prospects.get(draft.id) as { terms: Terms }
    const age = now - draft.created
    const chance = random()
    if (chance < (age < 5 * day ? 0.5 : 0.03)) return draft
    const at = Math.min(draft.created + 3_600, now)
    const open = finalizeAt(draft, payer, at)
    const later = Math.min(at + Math.floor(random() * 20 * day), now)
    if (chance < (age < 20 * day ? 0.8 : 0.1)) return stayOpen(open, terms, later)
    if (chance > 0.96) return voidInvoice(open, later)
    return chance > 0.92 ? markUncollectible(open, later) : settle(open, terms, later)
  }

  for (let index = 0; index < count; index++) {
    // Every ninth invoice is created in the same second as the invoice before.
    const position = index % 9 === 8 ? index - 1 : index
    const created = start + Math.floor((position * span) / count)
    const payer = pick(random, payers)
    put(grow(draft(payer, created), payer))
  }
  for (const invoice of ids.draft.map(id => invoices.get(id) as StripeInvoice))
    put(takeOver(invoice, payerOf(invoice).balance))
  for (const customer of payers.flatMap(payer => customerOf(payer) ?? []))
    customers.set(customer.id, customer)
  let nextChange = now + pause
  return account
}
