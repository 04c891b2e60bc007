/** Stripe's key: whether it is good, and may read each of the four things that the connector reads. */
import type Stripe from 'stripe'
import { apiVersion, isStripesOwn, type StripeOptions } from '../stripe/client.ts'
import { type Asked, createAsker } from './ask-stripe.ts'
import type { ClockReading } from './check-clock.ts'
import { checkEndpoints } from './check-webhooks.ts'
import type { Reporter } from './findings.ts'

/** As Stripe's dashboard calls them. */
const permissions: [name: string, list: (stripe: Stripe) => Promise<object>][] = [
  ['Invoices', stripe => stripe.invoices.list({ limit: 1 })],
  ['Customers', stripe => stripe.customers.list({ limit: 1 })],
  ['Events', stripe => stripe.events.list({ limit: 1 })],
  ['Tax rates', stripe => stripe.taxRates.list({ limit: 1 })],
]

export interface StripeFound {
  /** Whether invoices can be fetched, for the sample. */
  mayRead: boolean
  clock: ClockReading | null
}

/** The kind of a key and its mode: all of it that may be shown. */
export function describeKey(apiKey: string): { kind: string; mode: 'live' | 'test' | 'unknown' } {
  const [, kind = '', mode = ''] = /^([sr])k_(live|test)_/.exec(apiKey) ?? [null, apiKey[0], '']
  return {
    kind: kind === 'r' ? 'restricted key' : 'secret key',
    mode: mode === 'live' || mode === 'test' ? mode : 'unknown',
  }
}

export async function checkStripe(
  report: Reporter,
  options: StripeOptions,
  hasWebhookSecret: boolean,
): Promise<StripeFound> {
  const asker = createAsker(options)
  report.begin('Stripe: key')
  const [first] = permissions as [(typeof permissions)[number]]
  const invoices = await asker.ask(first[1])
  const key = describeKey(options.apiKey)
  const shown = `${key.kind}, ${key.mode === 'unknown' ? 'mode not known' : `${key.mode} mode`}`
  if (invoices.kind === 'refused' && invoices.status === 401) {
    report.fail(
      'Stripe: key',
      `Stripe does not know this ${shown}`,
      'Copy it again from the dashboard: Developers, API keys. It may be revoked, expired, or belong to another account.',
    )
    return { mayRead: false, clock: asker.clock }
  }
  if (invoices.kind === 'failed') {
    const next = isStripesOwn(options.base)
      ? 'Check that this machine reaches https://api.stripe.com, and https://status.stripe.com.'
      : 'Check STRIPE_API_BASE, and that the sandbox runs.'
    report.fail('Stripe: key', invoices.why, next)
    return { mayRead: false, clock: asker.clock }
  }
  report.ok('Stripe: key', `${shown}, accepted`)

  const answers = new Map<string, Asked>()
  for (const [name, list] of permissions) {
    const check = `Stripe: read ${name}`
    report.begin(check)
    const answer = name === 'Invoices' ? invoices : await asker.ask(list)
    answers.set(name, answer)
    if (answer.kind === 'answer') report.ok(check, 'allowed')
    else if (answer.kind === 'refused')
      report.fail(
        check,
        'the key is not allowed to',
        `Give the key the permission "${name}: Read" in the dashboard: Developers, API keys, Edit key.`,
      )
    else report.fail(check, answer.why, 'Try again; if it fails again, look at https://status.stripe.com.')
  }
  checkVersion(report, answers.get('Events'))
  await checkEndpoints(report, hasWebhookSecret, () =>
    asker.ask(stripe => stripe.webhookEndpoints.list({ limit: 100 })),
  )
  const mayRead = ['Invoices', 'Customers', 'Tax rates'].every(name => answers.get(name)?.kind === 'answer')
  return { mayRead, clock: asker.clock }
}

/** The account's own version is told by the events that it makes. */
function checkVersion(report: Reporter, events: Asked | undefined): void {
  const [event] = events?.kind === 'answer' ? (events.body as Stripe.ApiList<Stripe.Event>).data : []
  const theirs = event?.api_version ?? null
  const note =
    theirs === null
      ? "the account's own version is not known"
      : theirs === apiVersion
        ? "the account's own version is the same"
        : `the account's own version is ${theirs}, which does no harm: events only notify`
  report.ok('Stripe: API version', `${apiVersion} is asked for; ${note}`)
}
