/** Checks whether Stripe accepts the key, what the key may read, and the account's webhook endpoints. */
import type Stripe from 'stripe'
import { apiVersion, createStripe, isStripesOwn, type StripeOptions } from '../../sources/stripe/client.ts'
import { neededEvents } from '../../sources/stripe/events.ts'
import { rights, stripeFailures } from '../../sources/stripe/failures.ts'
import { type ClockReading, checkClock, readDateHeader } from './check-clock.ts'
import { answerLimitMs, type Report, within } from './findings.ts'

/** A request for each permission that the connector needs. */
const probes: Record<keyof typeof rights, (stripe: Stripe) => Promise<object>> = {
  invoice: stripe => stripe.invoices.list({ limit: 1 }),
  customer: stripe => stripe.customers.list({ limit: 1 }),
  event: stripe => stripe.events.list({ limit: 1 }),
  tax_rate: stripe => stripe.taxRates.list({ limit: 1 }),
}

/** Returns the key's kind and mode. No other part of a key may be shown. */
export function describeKey(apiKey: string): { kind: string; mode: 'live' | 'test' | 'unknown' } {
  const [, mode = 'unknown'] = /^[sr]k_(live|test)_/.exec(apiKey) ?? []
  return { kind: apiKey.startsWith('r') ? 'restricted key' : 'secret key', mode: mode as 'live' }
}

/** Returns whether invoices can be read. */
export async function checkStripe(report: Report, options: StripeOptions, hasWebhookSecret: boolean) {
  const asker = createAsker(options)
  const check = report('Stripe: key')
  check.begin()
  const invoices = await asker.ask(stripe => stripe.invoices.list({ limit: 1 }))
  const key = describeKey(options.apiKey)
  const shown = `${key.kind}, ${key.mode === 'unknown' ? 'mode not known' : `${key.mode} mode`}`
  let mayRead = false
  if (invoices.kind === 'refused' && invoices.status === 401)
    check.fail(
      `Stripe does not know this ${shown}`,
      'Copy the key again from the dashboard (Developers, API keys). The key may be revoked or expired, or belong to another account.',
    )
  else if (invoices.kind === 'failed')
    check.fail(
      invoices.why,
      isStripesOwn(options.base)
        ? 'Check that this machine reaches https://api.stripe.com, and look at https://status.stripe.com for an outage.'
        : 'Check STRIPE_API_BASE, and check that the sandbox is running.',
    )
  else {
    check.ok(`${shown}, accepted`)
    mayRead = await checkPermissions(report, invoices, asker)
    await checkEndpoints(report, hasWebhookSecret, asker)
  }
  checkClock(report, 'Stripe', asker.clock(), !isStripesOwn(options.base))
  return mayRead
}

async function checkPermissions(report: Report, invoices: Answer, asker: Asker): Promise<boolean> {
  const answers = new Map<keyof typeof rights, Answer>()
  for (const right of Object.keys(probes) as (keyof typeof rights)[]) {
    const name = rights[right]
    const permission = report(`Stripe: read ${name}`)
    permission.begin()
    const answer = right === 'invoice' ? invoices : await asker.ask(probes[right])
    answers.set(right, answer)
    if (answer.kind === 'answer') permission.ok('allowed')
    else if (answer.kind === 'refused')
      permission.fail(
        'the key may not read this',
        `Give the key the permission "${name}: Read" in the dashboard (Developers, API keys, Edit key).`,
      )
    else
      permission.fail(
        answer.why,
        'Try again. If it fails again, look at https://status.stripe.com for an outage.',
      )
  }
  if (invoices.kind === 'answer') await checkPayments(report, asker)
  const events = answers.get('event')
  // An event carries the API version of its account.
  const [event] = events?.kind === 'answer' ? (events.body as Stripe.ApiList<Stripe.Event>).data : []
  const theirs = event?.api_version ?? null
  const is = theirs === null ? 'not known' : theirs === apiVersion ? 'the same' : `${theirs}, ${harmless}`
  report('Stripe: API version').ok(`Fatura uses ${apiVersion}. The account's default version is ${is}`)
  const needed = ['invoice', 'customer', 'tax_rate'] as const
  return needed.every(right => answers.get(right)?.kind === 'answer')
}

/** A missing permission is only a warning, because everything except the payments is still read. */
async function checkPayments(report: Report, { ask }: Asker): Promise<void> {
  const check = report('Stripe: read payments of invoices')
  check.begin()
  const answer = await ask(stripe => stripe.invoices.list({ limit: 1, expand: ['data.payments'] }))
  if (answer.kind === 'answer') check.ok('allowed')
  else if (answer.kind === 'refused')
    check.warn(
      'the key may not read this, so no document is found by its payment',
      'Give the key permission to read payments of invoices in the dashboard (Developers, API keys, Edit key).',
    )
  else
    check.warn(answer.why, 'Try again. If it fails again, look at https://status.stripe.com for an outage.')
}

type Answer<T = object> =
  | { kind: 'answer'; body: T }
  | { kind: 'refused'; status: 401 | 403 }
  | { kind: 'failed'; why: string }

type Asker = ReturnType<typeof createAsker>

function createAsker(options: StripeOptions) {
  const stripe = createStripe({ ...options, timeoutMs: answerLimitMs })
  let clock: ClockReading | null = null
  return {
    /** The clock reading of the first answer, also when Stripe refused the call. Null before an answer. */
    clock: () => clock,
    /** Makes one call with a time limit. Never rejects. */
    async ask<T extends object>(call: (stripe: Stripe) => Promise<T>): Promise<Answer<T>> {
      const before = Date.now()
      const readClock = (headers: Record<string, string> | undefined) => {
        clock ??= readDateHeader(headers?.date, before, Date.now())
      }
      try {
        const body = await within(answerLimitMs + 1_000, () => call(stripe))
        readClock((body as { lastResponse?: { headers?: Record<string, string> } }).lastResponse?.headers)
        return { kind: 'answer', body }
      } catch (error) {
        const { statusCode, headers } = error as { statusCode?: number; headers?: Record<string, string> }
        readClock(headers)
        if (statusCode === 401 || statusCode === 403) return { kind: 'refused', status: statusCode }
        return { kind: 'failed', why: stripeFailures.explain(error).message }
      }
    },
  }
}

const harmless = 'which causes no problem, because events only notify'

/** Reports no failures, because webhooks only make changes arrive sooner. */
async function checkEndpoints(report: Report, hasSecret: boolean, { ask }: Asker): Promise<void> {
  const check = report('Stripe: webhook endpoint')
  const polling = 'Without a webhook, Fatura finds changes by polling, within about 10 s.'
  if (!hasSecret)
    return check.skip(
      'STRIPE_WEBHOOK_SECRET is not set, so no webhooks are received',
      `${polling} To receive them, see docs/sync.md.`,
    )
  check.begin()
  const answer = await ask(stripe => stripe.webhookEndpoints.list({ limit: 100 }))
  if (answer.kind === 'refused')
    return check.skip(
      'the key may not read webhook endpoints, and only this check needs it',
      'Check the endpoint in the dashboard, or give the key the permission "Webhook Endpoints: Read".',
    )
  if (answer.kind === 'failed') return check.skip(answer.why, 'Try again.')
  const { data: endpoints } = answer.body
  // Stripe does not say which endpoint belongs to Fatura. The enabled endpoint with the most needed events is compared.
  const [best] = endpoints
    .filter(({ status }) => status === 'enabled')
    .map(({ api_version, enabled_events: enabled }) => ({
      api_version,
      // `*` is the only pattern that Stripe accepts in an endpoint's events.
      missing: neededEvents.filter(type => !(enabled.includes('*') || enabled.includes(type))),
    }))
    .sort((a, b) => a.missing.length - b.missing.length)
  if (best === undefined)
    return check.warn(
      endpoints.length === 0 ? 'the account has no endpoint' : 'no endpoint of the account is enabled',
      `Create or enable an endpoint in the dashboard (Developers, Webhooks). ${polling}`,
    )
  if (best.missing.length > 0)
    return check.warn(
      `no enabled endpoint sends ${best.missing.join(', ')}`,
      `Add them to the events of an endpoint in the dashboard (Developers, Webhooks). ${polling}`,
    )
  const version = `at API version ${best.api_version ?? "of the account's own"}`
  check.ok(
    `an endpoint is enabled and sends all needed events, ${version}${best.api_version === apiVersion ? '' : `, ${harmless}`}`,
  )
}
