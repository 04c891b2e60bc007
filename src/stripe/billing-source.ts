/** What the connector asks of Stripe: every invoice, one invoice, and what happened. */
import type Stripe from 'stripe'
import type { Invoice } from '../invoice.ts'
import { type BillingSource, type Notification, type Observation, SourceError } from '../sources.ts'
import { createPacedCall, type Pace } from '../upstream/paced-calls.ts'
import { createStripe, isStripesOwn, type StripeOptions } from './client.ts'
import { stripeFailures } from './failures.ts'
import { listLines, readLinePage } from './list-lines.ts'
import { type MetadataKeys, mapClaim, usualKeys } from './map-claim.ts'
import { mapInvoice, percentageOf, rateIds, type TaxRates } from './map-invoice.ts'

const pageSize = 100

/** Below the 25 a second that Stripe allows for one endpoint. */
const stripesPace: Pace = { perSecond: 20, attempts: 6, patience: 60_000 }
/** A sandbox has limits only when it is told to. */
const sandboxPace: Pace = { perSecond: 10_000, attempts: 6, patience: 60_000 }

/** Events that concern invoices: their own, and those of customers, whose names and tax ids drafts follow. */
export const eventTypes = ['invoice.*', 'customer.updated', 'customer.deleted', 'customer.tax_id.*']

export function createBillingSource(
  options: StripeOptions,
  pace: Pace = isStripesOwn(options.base) ? stripesPace : sandboxPace,
  keys: MetadataKeys = usualKeys,
): BillingSource {
  const stripe = createStripe(options)
  const call = createPacedCall(pace, stripeFailures)
  const percentages = new Map<string, number>()

  /** A rate's percentage cannot change, so it is asked for once. */
  async function ratesFor(invoice: Stripe.Invoice): Promise<TaxRates> {
    for (const id of rateIds(invoice))
      if (!percentages.has(id))
        percentages.set(id, await call(async () => checkPercentage(await stripe.taxRates.retrieve(id))))
    return percentages
  }

  async function retrieve(id: string, customerId: string | null, isAgain: boolean): Promise<Observation> {
    const invoice = await unlessMissing(
      call(async () => {
        const answer = await stripe.invoices.retrieve(id, { expand: ['customer'] })
        return isDeleted(answer) ? null : checkInvoice(answer)
      }),
    )
    return invoice === null ? { id, customer_id: customerId, map: null } : observe(invoice, isAgain)
  }

  async function observe(invoice: Stripe.Invoice, isAgain = false): Promise<Observation> {
    const customer_id =
      typeof invoice.customer === 'string' ? invoice.customer : (invoice.customer?.id ?? null)
    const rates = await ratesFor(invoice)
    const list = (params: Stripe.InvoiceListLineItemsParams) =>
      call(async () => readLinePage(await stripe.invoices.listLineItems(invoice.id, params)))
    const lines = await unlessMissing(
      listLines(list, invoice.lines.has_more ? undefined : readLinePage(invoice.lines)),
    )
    // Since it was read, a line was deleted, or the invoice itself.
    if (lines === null && !isAgain) return retrieve(invoice.id, customer_id, true)
    if (lines === null) throw new SourceError('failed', 'Stripe does not know the lines of an invoice')
    return {
      id: invoice.id,
      customer_id,
      map: (previous: Invoice | null) => {
        const mapped = mapInvoice(invoice, rates, previous)
        return 'refusal' in mapped
          ? mapped
          : { invoice: mapped.invoice, lines, claim: mapClaim(invoice.metadata, keys) }
      },
    }
  }

  return {
    async listInvoices(after, customerId) {
      const page = await call(async () => {
        const answer = await stripe.invoices.list({
          limit: pageSize,
          expand: ['data.customer'],
          ...(after !== null && { starting_after: after }),
          ...(customerId !== undefined && { customer: customerId }),
        })
        checkPage(answer, after).data.forEach(checkInvoice)
        return answer
      })
      const observations: Observation[] = []
      for (const invoice of page.data) observations.push(await observe(invoice))
      return { observations, next: nextOf(page), reached: page.data.at(-1)?.created ?? 0 }
    },
    async estimateFirst() {
      const newestBefore = async (moment: number): Promise<number | null> => {
        const { data } = await call(() => stripe.invoices.list({ limit: 1, created: { lt: moment } }))
        return data[0]?.created ?? null
      }
      return searchFirst(newestBefore)
    },
    fetchInvoice: (id, customerId) => retrieve(id, customerId, false),
    async listNotifications(since, after) {
      const page = await call(async () =>
        checkPage(
          await stripe.events.list({
            limit: pageSize,
            types: eventTypes,
            created: { gte: since },
            ...(after !== null && { starting_after: after }),
          }),
          after,
        ),
      )
      const notifications = page.data.flatMap(event => readEvent(event) ?? [])
      return { notifications, next: nextOf(page), now: readClock(page) }
    },
    async identify() {
      const account = await call(() => unlessForbidden(stripe.accounts.retrieveCurrent()))
      const id = accountId(account)
      const [, mode] = /^[sr]k_(live|test)_/.exec(options.apiKey) ?? []
      if (mode === 'live' || mode === 'test') return { id, mode }
      const { data } = await call(() => stripe.invoices.list({ limit: 1 }))
      const [invoice] = data
      return { id, mode: invoice === undefined ? null : invoice.livemode ? 'live' : 'test' }
    },
  }
}

/** Null when the key may not read it, as a restricted one may not unless it was told so. */
async function unlessForbidden<T>(answer: Promise<T>): Promise<T | null> {
  return answer.catch(error => {
    if ((error as { statusCode?: number }).statusCode === 403) return null
    throw error
  })
}

function accountId(account: Stripe.Account | null): string | null {
  if (account !== null && !/^acct_\w+$/.test(String(account.id)))
    throw new SourceError('failed', 'Stripe sent an account that does not fit')
  return account?.id ?? null
}

const day = 86_400

/** Stripe lists newest first and counts nothing: steps back twice as far each time until there is nothing left. */
async function searchFirst(newestBefore: (moment: number) => Promise<number | null>): Promise<number | null> {
  let first = await newestBefore(Math.floor(Date.now() / 1000) + day)
  if (first === null) return null
  for (let step = day; step < first; step *= 2) {
    const earlier = await newestBefore(first - step)
    if (earlier === null) return first - step
    first = earlier
  }
  return first
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
  return type.startsWith('customer.') && customer_id !== null
    ? { id, type, created, invoice_id: null, customer_id }
    : null
}

/** Null when Stripe does not know what was asked for. */
async function unlessMissing<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof SourceError && error.failure === 'missing') return null
    throw error
  }
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

type Page<T> = { data: T[]; has_more: boolean }

/** A page whose records have ids, none of them where the last page ended: else it would be read for ever. */
function checkPage<T extends { id: string }>(page: Page<T>, after: string | null): Page<T> {
  const fits =
    Array.isArray(page.data) &&
    typeof page.has_more === 'boolean' &&
    page.data.every(({ id }) => typeof id === 'string' && id !== '' && id !== after) &&
    !(page.has_more && page.data.length === 0)
  if (!fits) throw new SourceError('failed', 'Stripe sent a page that does not fit')
  return page
}

function nextOf<T extends { id: string }>({ data, has_more }: Page<T>): string | null {
  return has_more ? (data.at(-1)?.id ?? null) : null
}

/** What the mapping relies on, whatever Stripe sent: asked again, it may fit. */
function checkInvoice(invoice: Stripe.Invoice): Stripe.Invoice {
  const amounts = [invoice.subtotal, invoice.total, invoice.created]
  const fits =
    invoice.object === 'invoice' &&
    typeof invoice.id === 'string' &&
    amounts.every(Number.isSafeInteger) &&
    isWholeOrNull(invoice.total_excluding_tax) &&
    typeof invoice.currency === 'string' &&
    /^[a-z]{3}$/.test(invoice.currency) &&
    [invoice.number, invoice.customer_name, invoice.customer_email].every(isTextOrNull) &&
    [invoice.total_taxes, invoice.total_discount_amounts].every(isAmountsOrNull)
  if (!fits) throw new SourceError('failed', 'Stripe sent an invoice that does not fit')
  if (!invoice.lines?.has_more) readLinePage(invoice.lines)
  return invoice
}

function checkPercentage(rate: Stripe.TaxRate): number {
  const percentage = percentageOf(rate)
  if (!Number.isFinite(percentage))
    throw new SourceError('failed', 'Stripe sent a tax rate that does not fit')
  return percentage
}

const isTextOrNull = (value: unknown) => value === null || value === undefined || typeof value === 'string'
const isWholeOrNull = (value: unknown) => value === null || value === undefined || Number.isSafeInteger(value)
const isAmountsOrNull = (value: unknown) =>
  value === null ||
  value === undefined ||
  (Array.isArray(value) && value.every(({ amount }) => Number.isSafeInteger(amount)))
