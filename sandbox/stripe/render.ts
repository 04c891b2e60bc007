/** Objects as the local Stripe sends them: with its own addresses, and the first lines alone. */
import { inOnePiece } from '../random.ts'
import type { StripeAccount } from './account.ts'
import { withoutTax } from './lines.ts'
import { apiVersion, onTheWire, type StripeEvent, type StripeInvoice, type StripeLine } from './objects.ts'

export interface World {
  account: StripeAccount
  /** Of the account itself, as in acct_1SandboxFatura. */
  accountId: string
  /** The beginning of the addresses of PDFs. */
  address: string
  /** The address of the subscribed webhook; null without one. */
  endpoint(): string | null
  /** Whether the subtotal of a line holds the tax that its price holds: nobody knows which way Stripe has it. */
  subtotals: 'with_tax' | 'without_tax'
}

/** `expands` tells whether the request expands a field. */
export function renderInvoice(
  world: World,
  invoice: StripeInvoice,
  expands: (field: string) => boolean,
): object {
  const sent = onTheWire(invoice, expands('payments')) as StripeInvoice
  const lines = { ...sent.lines, data: sent.lines.data.map(line => renderLine(world, line)) }
  const rendered = withAddress(world, { ...sent, lines })
  const customer = expands('customer') ? world.account.customers.get(String(invoice.customer)) : undefined
  return customer === undefined ? rendered : { ...rendered, customer }
}

export function renderLine({ account, subtotals }: World, line: StripeLine): StripeLine {
  const [tax] = line.taxes
  if (subtotals === 'with_tax' || tax?.tax_behavior !== 'inclusive') return line
  const { percentage = 0 } = account.taxRates.get(tax.tax_rate_details.tax_rate) ?? {}
  return { ...line, subtotal: withoutTax(line.subtotal, percentage) }
}

/** An event as the wire has it. */
export function renderEvent(world: World, event: StripeEvent): StripeEvent {
  if (event.data.object.object !== 'invoice') return event
  const object = withAddress(world, event.data.object as unknown as StripeInvoice)
  return { ...event, data: { ...event.data, object } }
}

/**
 * The same JSON for a test key and a live one, but for `livemode`. Text within it is not replaced: its quotes have a backslash
 * before them.
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

/** In seconds: the day on which the clock begins. A second subscription changes the endpoint and creates none. */
const endpointCreated = Date.UTC(2026, 9, 28) / 1000

/** The subscribed endpoint, if any. */
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
