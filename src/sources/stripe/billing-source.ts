/** Stripe for the connector: lists of invoices, single invoices, and events. */
import type Stripe from 'stripe'
import type { Line } from '../../domain/invoice.ts'
import { createPacedCall, type Pace } from '../calls/paced-calls.ts'
import type { PlatformInvoice } from '../platform-invoice.ts'
import {
  type BillingSource,
  type InvoiceAnswer,
  type Refusal,
  SourceError,
  UnfitRecord,
  type Urgency,
  unlessMissing,
} from '../source.ts'
import { createStripe, paceFor, type StripeOptions } from './client.ts'
import { neededEvents, readEvent } from './events.ts'
import { forbidden, stripeFailures, unlessForbidden, unlessGone } from './failures.ts'
import {
  eventShape,
  type InvoiceHead,
  invoiceShape,
  type PaymentItem,
  readAs,
  taxRateShape,
} from './invoice-shape.ts'
import { areDistinct, listLines, readLinePage } from './list-lines.ts'
import { listPayments, readPaymentPage } from './list-payments.ts'
import { type MetadataKeys, mapClaim } from './map-claim.ts'
import { addsUp, customerOf, mapInvoice, percentageOf, rateIds } from './map-invoice.ts'
import { mapPaymentFacts } from './map-payment.ts'
import { checkPage, sortOut } from './read-page.ts'
import { stripeIdentity } from './source-identity.ts'

const pageSize = 100
/** Test clocks also date events in the past, where they are not read: in test mode, frequent lists find these changes. */
const relistTestEveryMs = 15 * 60_000
/** A key that may not read tax rates or payments is not tried with each invoice. */
const forbiddenForMs = 10 * 60_000

const lacksRates = `${forbidden('tax_rate')}; where a rate is not known, the percentage is computed from the amounts`
const lacksPayments =
  'Stripe refused the key to read the payments of invoices; which payments paid an invoice is not known'

export function createBillingSource(
  options: StripeOptions,
  keys: MetadataKeys,
  pace: Pace = paceFor(options),
): BillingSource {
  const paced = createPacedCall(pace, stripeFailures)
  const call = <T>(endpoint: string, urgency: Urgency, work: () => Promise<T>) =>
    paced(work, { endpoint, urgency })
  const stripe = createStripe(options, paced.refusal)
  /** Requests under way. A rate's percentage cannot change, so it is fetched once. */
  const percentages = new Map<string, Promise<number | null | undefined>>()
  const known = new Map<string, number | null>()
  /** What Stripe last refused the key to read, and when; null when it did not. */
  const forbiddenAt = { taxRates: null as number | null, payments: null as number | null }
  const isForbidden = (what: keyof typeof forbiddenAt) => {
    const at = forbiddenAt[what]
    return at !== null && performance.now() - at < forbiddenForMs
  }
  /** Whether the rate needs no request. Without it, the percentage is computed from the amounts. */
  const isSettled = (id: string) => known.has(id) || isForbidden('taxRates')

  /** The client's own methods turn every decimal into an object, which is slow for long lists, or fail where one is odd. */
  function getPlain<T>(path: string, query: Record<string, string | number | null | undefined>): Promise<T> {
    const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined)
    return stripe.rawRequest('GET', `${path}?${new URLSearchParams(given as [string, string][])}`)
  }

  /** An invoice, or a list of them, with its customer and its payments; without these when the key may not read them. */
  async function getExpanded<T>(
    path: string,
    prefix: '' | 'data.',
    query: Record<string, string | number | null | undefined> = {},
  ): Promise<T> {
    const withCustomer = { ...query, 'expand[0]': `${prefix}customer` }
    if (isForbidden('payments')) return getPlain(path, withCustomer)
    const whole = await unlessForbidden(
      getPlain<T>(path, { ...withCustomer, 'expand[1]': `${prefix}payments` }),
    )
    if (whole !== null) {
      forbiddenAt.payments = null
      return whole
    }
    // It may lack another permission too: then this fails by it.
    const rest = await getPlain<T>(path, withCustomer)
    forbiddenAt.payments = performance.now()
    return rest
  }

  async function learnRates(invoice: InvoiceHead, urgency: Urgency): Promise<void> {
    for (const id of rateIds(invoice)) {
      if (isSettled(id)) continue
      const fetching = percentages.get(id) ?? fetchPercentage(id, urgency)
      percentages.set(id, fetching)
      const percentage = await fetching.finally(() => percentages.delete(id))
      forbiddenAt.taxRates = percentage === undefined ? performance.now() : null
      if (percentage !== undefined) known.set(id, percentage)
    }
  }

  /** Null for a rate that Stripe does not know; undefined when the key may not read it. */
  function fetchPercentage(id: string, urgency: Urgency): Promise<number | null | undefined> {
    const fetching = call('tax_rates', urgency, async () => {
      const rate = await unlessForbidden(stripe.taxRates.retrieve(id))
      return rate === null ? undefined : percentageOf(readAs(taxRateShape, rate, 'a tax rate'))
    })
    return unlessMissing(fetching)
  }

  async function retrieve(
    id: string,
    customerId: string | null,
    urgency: Urgency,
    isAgain = false,
  ): Promise<InvoiceAnswer> {
    const checked = await call('invoice', urgency, () =>
      unlessGone(id, async () => {
        const path = `/v1/invoices/${encodeURIComponent(id)}`
        const answer = await getExpanded<Stripe.Invoice>(path, '')
        if (answer.id !== id)
          throw new UnfitRecord('Stripe sent another invoice than the requested one', true)
        // A deleted draft is marked so, or not found at all: both occur.
        return (answer as { deleted?: unknown }).deleted === true ? null : checkInvoice(answer)
      }),
    )
    return checked === null
      ? { id, customer_id: customerId, found: null }
      : observe(checked, urgency, isAgain)
  }

  async function observe(
    { invoice, lines: carried, payments: firstPayments }: ReturnType<typeof checkInvoice>,
    urgency: Urgency,
    isAgain = false,
  ): Promise<InvoiceAnswer> {
    const payments = firstPayments?.has_more
      ? await readPayments(invoice.id, firstPayments.payments, urgency)
      : (firstPayments?.payments ?? null)
    if (carried !== null && areDistinct(carried.lines) && rateIds(invoice).every(isSettled))
      return answer(invoice, map(invoice, carried.lines, payments))
    const path = `/v1/invoices/${encodeURIComponent(invoice.id)}/lines`
    const list = (after: string | undefined) =>
      call('lines', urgency, async () =>
        readLinePage(await getPlain(path, { limit: pageSize, starting_after: after })),
      )
    const reading = unlessMissing(listLines(list, carried ?? undefined))
    const [lines] = await Promise.all([reading, learnRates(invoice, urgency)])
    // A line or the invoice itself was changed since it was read.
    const isOld = lines === null || (carried === null && !addsUp(invoice, lines))
    if (isOld && !isAgain) return retrieve(invoice.id, customerOf(invoice), urgency, true)
    if (lines === null) throw new UnfitRecord('Stripe does not know the lines of an invoice')
    return answer(invoice, map(invoice, lines, payments))
  }

  /** All of an invoice's payments; those that it carries when the key may read no others. */
  async function readPayments(invoiceId: string, carried: readonly PaymentItem[], urgency: Urgency) {
    if (isForbidden('payments')) return carried
    const list = (after: string | undefined) =>
      call('invoice_payments', urgency, async () => {
        const query = { invoice: invoiceId, limit: pageSize, starting_after: after }
        const answer = await unlessForbidden(getPlain('/v1/invoice_payments', query))
        if (answer !== null) return readPaymentPage(answer)
        forbiddenAt.payments = performance.now()
        return { payments: carried, has_more: false }
      })
    const all = await unlessMissing(listPayments(list))
    if (all === null) throw new UnfitRecord('Stripe does not know the payments of an invoice')
    return all
  }

  /** With the rates that are known by now: nothing that is learnt later changes what was mapped. */
  function map(
    invoice: InvoiceHead,
    lines: readonly Line[],
    payments: readonly PaymentItem[] | null,
  ): PlatformInvoice | { refusal: Refusal } {
    const mapped = mapInvoice(invoice, known, lines)
    if ('refusal' in mapped) return mapped
    return {
      invoice: mapped.invoice,
      lines,
      payment: mapPaymentFacts(invoice, mapped.invoice, known, payments),
      claim: mapClaim(invoice.metadata as Record<string, string> | null | undefined, keys),
      unread: { ...mapped.unread, payments: payments === null },
    }
  }

  return {
    ...stripeIdentity,
    eventsKeptDays: 30,
    ...(/^[sr]k_test_/.test(options.apiKey) && { relistEveryMs: relistTestEveryMs }),
    lacks: () => {
      const lacks = [
        ...(forbiddenAt.taxRates === null ? [] : [lacksRates]),
        ...(forbiddenAt.payments === null ? [] : [lacksPayments]),
      ]
      return lacks.length === 0 ? null : lacks.join('. ')
    },
    async listInvoices(after, { customerId, status, from, before } = {}, urgency = 'soon') {
      const query = {
        ...{ limit: pageSize, starting_after: after },
        ...{ customer: customerId, status, 'created[gte]': from, 'created[lt]': before },
      }
      const page = await call('invoices', urgency, async () => {
        const answer = await getExpanded<Stripe.ApiList<Stripe.Invoice>>('/v1/invoices', 'data.', query)
        const { data, ...rest } = checkPage(answer, after)
        return { ...rest, ...(await sortOut(data, async invoice => checkInvoice(invoice))) }
      })
      const { fitting, nameless, next } = page
      const observed = await sortOut(fitting, checked => observe(checked, urgency), page.unfit)
      return {
        answers: observed.fitting,
        unfit: observed.unfit,
        nameless,
        next,
        began: fitting[0]?.invoice.created ?? 0,
        reached: fitting.at(-1)?.invoice.created ?? 0,
      }
    },
    fetchInvoice: (id, customerId, urgency = 'now') => retrieve(id, customerId, urgency),
    async listNotifications(since, after) {
      const page = await call('events', 'now', async () => {
        const answer = await stripe.events.list({
          limit: pageSize,
          types: [...neededEvents],
          created: { gte: since },
          ...(after !== null && { starting_after: after }),
        })
        const page = checkPage(answer, after)
        // Events are known by their ids as applied already.
        if (page.nameless > 0) throw new SourceError('failed', 'Stripe sent an event without an id')
        return page
      })
      const notifications = page.data.flatMap(event => {
        // An event that does not fit is a failure: no change may be skipped.
        readAs(eventShape, event, `an event (${event.id})`)
        return readEvent(event) ?? []
      })
      const newest = page.data.length === 0 ? null : Math.max(...page.data.map(({ created }) => created))
      return { notifications, next: page.next, newest }
    },
    /** The account and the mode of a key. */
    async identify() {
      // A restricted key needs a permission of its own for it.
      const account = await call('account', 'now', () => unlessForbidden(stripe.accounts.retrieveCurrent()))
      if (account !== null && !/^acct_\w+$/.test(String(account.id)))
        throw new SourceError('failed', 'Stripe sent an account that does not fit')
      const id = account?.id ?? null
      // A key names its mode; with one of another form, an invoice does.
      const [, mode] = /^[sr]k_(live|test)_/.exec(options.apiKey) ?? []
      if (mode === 'live' || mode === 'test') return { id, mode }
      const [invoice] = (await call('invoices', 'now', () => stripe.invoices.list({ limit: 1 }))).data
      return { id, mode: invoice === undefined ? null : invoice.livemode ? 'live' : 'test' }
    },
  }
}

/** An invoice that fits, with its lines when it carries all of them, and its first payments when it carries any list of them. */
function checkInvoice(answer: unknown) {
  const invoice = readAs(invoiceShape, answer, 'an invoice')
  const { lines } = invoice
  const isCut = typeof lines === 'object' && lines !== null && 'has_more' in lines && lines.has_more === true
  const payments = invoice.payments == null ? null : readPaymentPage(invoice.payments)
  return { id: invoice.id, invoice, lines: isCut ? null : readLinePage(lines), payments }
}

function answer(invoice: InvoiceHead, found: InvoiceAnswer['found']): InvoiceAnswer {
  return { id: invoice.id, customer_id: customerOf(invoice), found }
}
