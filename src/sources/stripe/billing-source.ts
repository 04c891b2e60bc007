/** Stripe as the connector uses it: lists of invoices, single invoices, and events. */
import type { Pace } from '../calls/paced-calls.ts'
import { type BillingAccount, type BillingSource, type NotificationPage, SourceError } from '../source.ts'
import { BillingCalls } from './billing-calls.ts'
import { paceFor, type StripeOptions } from './client.ts'
import { neededEvents, readEvent } from './events.ts'
import { unlessForbidden } from './failures.ts'
import { eventShape, readAs } from './invoice-shape.ts'
import type { MetadataKeys } from './map-claim.ts'
import { InvoiceReader, pageSize } from './read-invoices.ts'
import { checkPage } from './read-page.ts'
import { stripeIdentity } from './source-identity.ts'

/** Interval of full lists in test mode. Stripe's test clocks also create events with past dates, which the connector does not read. */
const relistTestEveryMs = 15 * 60_000

export function createBillingSource(
  options: StripeOptions,
  keys: MetadataKeys,
  pace: Pace = paceFor(options),
): BillingSource {
  const calls = new BillingCalls(options, pace)
  const invoices = new InvoiceReader(calls, keys)
  return {
    ...stripeIdentity,
    eventsKeptDays: 30,
    ...(/^[sr]k_test_/.test(options.apiKey) && { relistEveryMs: relistTestEveryMs }),
    lacks: () => calls.describeLacks(),
    listInvoices: (after, filter = {}, urgency = 'soon') => invoices.list(after, filter, urgency),
    fetchInvoice: (id, customerId, urgency = 'now') => invoices.retrieve(id, customerId, urgency, false),
    listNotifications: (since, after) => listNotifications(calls, since, after),
    identify: () => identify(calls, options.apiKey),
  }
}

async function listNotifications(
  calls: BillingCalls,
  since: number,
  after: string | null,
): Promise<NotificationPage> {
  const page = await calls.call('events', 'now', async () => {
    const answer = await calls.stripe.events.list({
      limit: pageSize,
      types: [...neededEvents],
      created: { gte: since },
      ...(after !== null && { starting_after: after }),
    })
    const page = checkPage(answer, after)
    // The connector recognizes applied events by their ids, so an event without an id is an error.
    if (page.nameless > 0) throw new SourceError('failed', 'Stripe sent an event without an id')
    return page
  })
  const notifications = page.data.flatMap(event => {
    // One event that fails the checks fails the whole page, because no change may be skipped.
    readAs(eventShape, event, `an event (${event.id})`)
    return readEvent(event) ?? []
  })
  const newest = page.data.length === 0 ? null : Math.max(...page.data.map(({ created }) => created))
  return { notifications, next: page.next, newest }
}

async function identify(calls: BillingCalls, apiKey: string): Promise<BillingAccount> {
  const { stripe } = calls
  // A restricted key may lack the permission to read its account.
  const account = await calls.call('account', 'now', () => unlessForbidden(stripe.accounts.retrieveCurrent()))
  if (account !== null && !/^acct_\w+$/.test(String(account.id)))
    throw new SourceError('failed', 'Stripe sent an account that does not fit')
  const id = account?.id ?? null
  // Most keys name their mode, test or live. For a key of another form, an invoice tells the mode.
  const [, mode] = /^[sr]k_(live|test)_/.exec(apiKey) ?? []
  if (mode === 'live' || mode === 'test') return { id, mode }
  const [invoice] = (await calls.call('invoices', 'now', () => stripe.invoices.list({ limit: 1 }))).data
  return { id, mode: invoice === undefined ? null : invoice.livemode ? 'live' : 'test' }
}
