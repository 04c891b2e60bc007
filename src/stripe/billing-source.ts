/** What the connector asks of Stripe: every invoice, one invoice, and what happened. */
import type Stripe from 'stripe'
import type { Invoice, Line } from '../invoice.ts'
import {
  type BillingSource,
  type ListFilter,
  type Notification,
  type Observation,
  SourceError,
  type Unfit,
  UnfitRecord,
  type Urgency,
  unlessMissing,
} from '../sources.ts'
import { createPacedCall, type Pace } from '../upstream/paced-calls.ts'
import {
  type CheckedInvoice,
  checkEvent,
  checkInvoice,
  checkPage,
  checkPercentage,
  nextOf,
} from './check-answer.ts'
import { createStripe, type StripeOptions } from './client.ts'
import { invoicesToFollow } from './customer-changes.ts'
import { forbidden, stripeFailures, unlessForbidden, unlessGone } from './failures.ts'
import { identifyAccount } from './identify-account.ts'
import type { InvoiceHead } from './invoice-shape.ts'
import { areDistinct, type LineQuery, listLines, readLinePage } from './list-lines.ts'
import { type MetadataKeys, mapClaim, usualKeys } from './map-claim.ts'
import { addsUp, mapInvoice, rateIds, type TaxRates } from './map-invoice.ts'
import { neededEvents } from './needed-events.ts'
import { paceFor } from './pace.ts'
import { stripeIdentity } from './source-identity.ts'

const pageSize = 100
/** Test clocks date events in the past as well, where nobody looks for them: in test mode, lists tell of what they did. */
const relistTestEveryMs = 15 * 60_000
/** A key that may not read tax rates is not tried with each invoice, in milliseconds. */
const ratesAgainMs = 10 * 60_000

export function createBillingSource(
  options: StripeOptions,
  pace: Pace = paceFor(options),
  keys: MetadataKeys = usualKeys,
): BillingSource {
  const call = createPacedCall(pace, stripeFailures)
  const stripe = createStripe(options, call.refusal)
  /** A rate's percentage cannot change, so it is asked for once. */
  const percentages = new Map<string, Promise<number | null | undefined>>()
  const known = new Map<string, number | null>()
  /** When the key was last told that it may not read tax rates; null when it may, or was not told. */
  let forbiddenAt: number | null = null
  /** Without a rate, the percentage follows from the amounts. */
  const isSettled = (id: string) =>
    known.has(id) || (forbiddenAt !== null && performance.now() - forbiddenAt < ratesAgainMs)

  /** The client's own methods turn every decimal of an answer into an object, or fail where one is odd; of long lists, that takes a while. */
  function askPlainly<T>(path: string, query: Record<string, string>): Promise<T> {
    return stripe.rawRequest('GET', `${path}?${new URLSearchParams(query)}`)
  }

  async function ratesFor(invoice: InvoiceHead, urgency: Urgency): Promise<TaxRates> {
    for (const id of rateIds(invoice)) {
      if (isSettled(id)) continue
      const asking = percentages.get(id) ?? askPercentage(id, urgency)
      percentages.set(id, asking)
      const percentage = await asking.finally(() => percentages.delete(id))
      forbiddenAt = percentage === undefined ? performance.now() : null
      if (percentage !== undefined) known.set(id, percentage)
    }
    return known
  }

  /** Null for one that Stripe does not know; undefined when the key may not ask. */
  function askPercentage(id: string, urgency: Urgency): Promise<number | null | undefined> {
    const ask = async () => {
      const rate = await unlessForbidden(stripe.taxRates.retrieve(id))
      return rate === null ? undefined : checkPercentage(rate)
    }
    return unlessMissing(call(ask, { endpoint: 'tax_rates', urgency }))
  }

  async function retrieve(
    id: string,
    customerId: string | null,
    urgency: Urgency,
    isAgain = false,
  ): Promise<Observation> {
    const checked = await call(
      () =>
        unlessGone(id, async () => {
          const path = `/v1/invoices/${encodeURIComponent(id)}`
          const answer = await askPlainly<Stripe.Invoice>(path, { 'expand[]': 'customer' })
          if (answer.id !== id) throw new UnfitRecord('Stripe sent another invoice than was asked for')
          return isDeleted(answer) ? null : checkInvoice(answer)
        }),
      { endpoint: 'invoice', urgency },
    )
    return checked === null ? { id, customer_id: customerId, map: null } : observe(checked, urgency, isAgain)
  }

  /** At once when nothing more has to be asked. */
  function observe(
    checked: CheckedInvoice,
    urgency: Urgency,
    isAgain = false,
  ): Promise<Observation> | Observation {
    const { invoice, lines } = checked
    const isWhole = lines !== null && areDistinct(lines.lines) && rateIds(invoice).every(isSettled)
    return isWhole ? observed(invoice, lines.lines, known) : complete(checked, urgency, isAgain)
  }

  async function complete(
    { invoice, lines: carried }: CheckedInvoice,
    urgency: Urgency,
    isAgain: boolean,
  ): Promise<Observation> {
    const customer_id = customerOf(invoice)
    const path = `/v1/invoices/${encodeURIComponent(invoice.id)}/lines`
    const list = ({ limit, starting_after }: LineQuery) =>
      call(
        async () =>
          readLinePage(
            await askPlainly(path, { limit: String(limit), ...(starting_after && { starting_after }) }),
          ),
        { endpoint: 'lines', urgency },
      )
    const [rates, lines] = await Promise.all([
      ratesFor(invoice, urgency),
      unlessMissing(listLines(list, carried ?? undefined)),
    ])
    // Since it was read, a line was added or deleted, or the invoice itself.
    const isOld = lines === null || (carried === null && !addsUp(invoice, lines))
    if (isOld && !isAgain) return retrieve(invoice.id, customer_id, urgency, true)
    if (lines === null) throw new UnfitRecord('Stripe does not know the lines of an invoice')
    return observed(invoice, lines, rates)
  }

  function observed(source: InvoiceHead, lines: readonly Line[], rates: TaxRates): Observation {
    // Most of an answer are lines. They are mapped already, and are not to be held until it is stored.
    const invoice: InvoiceHead = Object.assign(source, { lines: undefined })
    return {
      id: invoice.id,
      customer_id: customerOf(invoice),
      created: invoice.created,
      map: (previous: Invoice | null) => {
        const mapped = mapInvoice(invoice, rates, previous, lines)
        return 'refusal' in mapped
          ? mapped
          : {
              invoice: mapped.invoice,
              lines,
              claim: mapClaim(invoice.metadata as Record<string, string> | null | undefined, keys),
            }
      },
    }
  }

  return {
    ...stripeIdentity,
    eventsKeptDays: 30,
    ...(/^[sr]k_test_/.test(options.apiKey) && { relistEveryMs: relistTestEveryMs }),
    lacks: () =>
      forbiddenAt === null
        ? null
        : `${forbidden('tax_rate')}; where a rate is not known, the percentage is computed from the amounts`,
    async listInvoices(after, filter = {}, urgency = 'soon') {
      const query = listQuery(after, filter)
      const page = await call(
        async () => {
          const answer = await askPlainly<Stripe.ApiList<Stripe.Invoice>>('/v1/invoices', query)
          const page = checkPage(answer, after)
          return { ...sortOut(page.data), next: nextOf(page), nameless: page.nameless }
        },
        { endpoint: 'invoices', urgency },
      )
      const results = await Promise.allSettled(page.fitting.map(checked => observe(checked, urgency)))
      const observations: Observation[] = []
      const unfit = [...page.unfit]
      for (const [index, result] of results.entries())
        if (result.status === 'fulfilled') observations.push(result.value)
        else if (result.reason instanceof UnfitRecord)
          unfit.push({ id: page.fitting[index]?.invoice.id ?? '', reason: result.reason.message })
        else throw result.reason
      failIfNoneFits(observations, unfit)
      return {
        observations,
        unfit,
        nameless: page.nameless,
        next: page.next,
        began: page.fitting[0]?.invoice.created ?? 0,
        reached: page.fitting.at(-1)?.invoice.created ?? 0,
      }
    },
    fetchInvoice: (id, customerId, urgency = 'now') => retrieve(id, customerId, urgency),
    async listNotifications(since, after) {
      const page = await call(
        async () => {
          const answer = await stripe.events.list({
            limit: pageSize,
            types: [...neededEvents],
            created: { gte: since },
            ...(after !== null && { starting_after: after }),
          })
          const page = checkPage(answer, after)
          // Without its id, nobody could tell whether it was applied already.
          if (page.nameless > 0) throw new SourceError('failed', 'Stripe sent an event without an id')
          return { ...page, now: readClock(answer) }
        },
        { endpoint: 'events', urgency: 'now' },
      )
      const notifications = page.data.flatMap(event => readEvent(checkEvent(event)) ?? [])
      return { notifications, next: nextOf(page), now: page.now }
    },
    identify: () => identifyAccount(stripe, options.apiKey, call),
  }
}

function listQuery(
  after: string | null,
  { customerId, status, from, before }: ListFilter,
): Record<string, string> {
  return {
    limit: String(pageSize),
    'expand[]': 'data.customer',
    ...(after !== null && { starting_after: after }),
    ...(customerId !== undefined && { customer: customerId }),
    ...(status !== undefined && { status }),
    ...(from !== undefined && { 'created[gte]': String(from) }),
    ...(before !== undefined && { 'created[lt]': String(before) }),
  }
}

/** So many records of which none fits say more of the platform than of the records. */
const misfitsToDoubt = 10

/** One that does not fit keeps none of the others back. */
function sortOut(invoices: readonly Stripe.Invoice[]): { fitting: CheckedInvoice[]; unfit: Unfit[] } {
  const fitting: CheckedInvoice[] = []
  const unfit: Unfit[] = []
  for (const invoice of invoices)
    try {
      fitting.push(checkInvoice(invoice))
    } catch (error) {
      if (!(error instanceof UnfitRecord)) throw error
      unfit.push({ id: invoice.id, reason: error.message })
    }
  failIfNoneFits(fitting, unfit)
  return { fitting, unfit }
}

function failIfNoneFits(fitting: readonly unknown[], unfit: readonly Unfit[]): void {
  const [first] = unfit
  if (fitting.length === 0 && unfit.length >= misfitsToDoubt && first !== undefined)
    throw new UnfitRecord(first.reason)
}

/** What an event says happened, and to what; null when it concerns no invoice. Its data is not used: it may be old. */
export function readEvent({ id, type, created, data }: Stripe.Event): Notification | null {
  const object = data?.object as { id?: unknown; object?: unknown; customer?: unknown } | undefined
  const idOf = (value: unknown) => {
    const found = typeof value === 'string' ? value : (value as { id?: unknown } | null)?.id
    return typeof found === 'string' ? found : null
  }
  const customer_id = object?.object === 'customer' ? idOf(object) : idOf(object?.customer)
  if (type.startsWith('invoice.')) {
    const invoice_id = object?.object === 'invoice' && typeof object.id === 'string' ? object.id : null
    // A preview of what is to come has no id, and is no invoice.
    return invoice_id?.startsWith('in_') ? { id, type, created, invoice_id, customer_id } : null
  }
  const scope = type.startsWith('customer.') ? invoicesToFollow(type, data?.previous_attributes) : 'none'
  if (customer_id === null || scope === 'none') return null
  return { id, type, created, invoice_id: null, customer_id, ...(scope === 'draft' && { only: scope }) }
}

function customerOf({ customer }: InvoiceHead): string | null {
  return typeof customer === 'string' ? customer : (customer?.id ?? null)
}

/** A deleted draft is told so, or not found at all: both occur. */
function isDeleted(invoice: { deleted?: unknown }): boolean {
  return invoice.deleted === true
}

/** Stripe's clock, as its answers tell it; ours when they do not. */
function readClock(answer: object): number {
  const { lastResponse } = answer as { lastResponse?: { headers?: Record<string, string> } }
  const told = Date.parse(lastResponse?.headers?.date ?? '')
  return Math.floor((Number.isNaN(told) ? Date.now() : told) / 1000)
}
