/** Whether Stripe sends what it should to whoever receives webhooks. They only make it faster: nothing here fails. */
import type Stripe from 'stripe'
import { apiVersion } from '../stripe/client.ts'
import { neededEvents } from '../stripe/events.ts'
import type { Asked } from './ask-stripe.ts'
import type { Reporter } from './findings.ts'

const check = 'Stripe: webhook endpoint'
const polling = 'Without it, changes are found by polling, within about 10 s.'

type Endpoints = Stripe.ApiList<Stripe.WebhookEndpoint>

export async function checkEndpoints(
  report: Reporter,
  hasSecret: boolean,
  list: () => Promise<Asked<Endpoints>>,
): Promise<void> {
  if (!hasSecret)
    return report.skip(
      check,
      'STRIPE_WEBHOOK_SECRET is not set, so no webhooks are received',
      `${polling} To receive them, see docs/sync.md.`,
    )
  report.begin(check)
  const answer = await list()
  if (answer.kind === 'refused')
    return report.skip(
      check,
      'the key may not read webhook endpoints, and does not need to',
      'Look in the dashboard, or add "Webhook Endpoints: Read" for this check.',
    )
  if (answer.kind === 'failed') return report.skip(check, answer.why, 'Try again.')
  judge(report, answer.body.data)
}

/** Which endpoint is ours is not told: the one that sends the most of what is needed counts. */
function judge(report: Reporter, endpoints: readonly Stripe.WebhookEndpoint[]): void {
  const enabled = endpoints
    .filter(({ status }) => status === 'enabled')
    .map(endpoint => ({ endpoint, missing: missingOf(endpoint) }))
    .sort((a, b) => a.missing.length - b.missing.length)
  const [best] = enabled
  if (best === undefined)
    report.warn(
      check,
      endpoints.length === 0 ? 'the account has no endpoint' : 'no endpoint of the account is enabled',
      `Create or enable one in the dashboard: Developers, Webhooks. ${polling}`,
    )
  else if (best.missing.length > 0)
    report.warn(
      check,
      `no enabled endpoint sends ${best.missing.join(', ')}`,
      `Add them to its events in the dashboard: Developers, Webhooks. ${polling}`,
    )
  else
    report.ok(
      check,
      `an endpoint is enabled and sends every event that is used, ${tellVersion(best.endpoint)}`,
    )
}

function tellVersion({ api_version }: Stripe.WebhookEndpoint): string {
  const version = `at API version ${api_version ?? "of the account's own"}`
  return api_version === apiVersion ? version : `${version}, which does no harm: events only notify`
}

/** An endpoint is told events by name: it takes no pattern but that for everything. */
function missingOf({ enabled_events }: Stripe.WebhookEndpoint): string[] {
  return enabled_events.includes('*') ? [] : neededEvents.filter(type => !enabled_events.includes(type))
}
