/** Objects as the local Stripe sends them: with addresses of its own, and no more lines than Stripe sends at once. */
import { inOnePiece } from '../random.ts'
import type { StripeAccount } from './account.ts'
import { apiVersion, type StripeEvent, type StripeInvoice, withFirstLines } from './objects.ts'

export interface World {
  account: StripeAccount
  /** Of the account itself, as in acct_1SandboxFatura. */
  accountId: string
  /** What the addresses of PDFs begin with. */
  address: string
  /** Where events are sent to; null before anybody subscribed. */
  endpoint(): string | null
}

export function renderInvoice(world: World, invoice: StripeInvoice, expanded: boolean): StripeInvoice {
  const rendered = withAddress(world, withFirstLines(invoice))
  const customer = expanded ? world.account.customers.get(String(invoice.customer)) : undefined
  return customer === undefined ? rendered : { ...rendered, customer }
}

/** An event as the wire has it. */
export function renderEvent(world: World, event: StripeEvent): StripeEvent {
  if (event.data.object.object !== 'invoice') return event
  const object = withAddress(world, event.data.object as unknown as StripeInvoice)
  return { ...event, data: { ...event.data, object } }
}

/**
 * The same JSON for a test key and for a live one, but for the mode that each object tells. No text within it is taken
 * for a mode: there, quotes have a backslash before them.
 */
export function writeInMode(value: object, livemode: boolean): string {
  const text = JSON.stringify(value)
  return livemode ? text.replaceAll('"livemode":false', '"livemode":true') : text
}

function withAddress({ address }: World, invoice: StripeInvoice): StripeInvoice {
  if (invoice.invoice_pdf === null) return invoice
  const { invoice_pdf, hosted_invoice_url } = invoice
  return {
    ...invoice,
    invoice_pdf: inOnePiece(address, String(invoice_pdf)),
    hosted_invoice_url: inOnePiece(address, String(hosted_invoice_url)),
  }
}

/** When the endpoint was made, in seconds: the day the clock begins, since who subscribes again changes it and makes none. */
const endpointCreated = Date.UTC(2026, 9, 28) / 1000

/** One when somebody subscribed, else none. */
export function renderEndpoints({ endpoint }: World): { id: string }[] {
  const url = endpoint()
  if (url === null) return []
  const made = {
    id: 'we_1SandboxFatura',
    object: 'webhook_endpoint',
    api_version: apiVersion,
    application: null,
    created: endpointCreated,
    description: null,
    enabled_events: ['*'],
    livemode: false,
    metadata: {},
    status: 'enabled',
    url,
  }
  return [made]
}
