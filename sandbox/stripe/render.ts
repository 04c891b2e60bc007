/** Objects as the local Stripe sends them, with the server's address and only the first lines. */
import { inOnePiece } from '../random.ts'
import type { StripeAccount } from './account.ts'
import { withoutTax } from './lines.ts'
import { apiVersion, onTheWire, type StripeEvent, type StripeInvoice, type StripeLine } from './objects.ts'

export interface World {
  account: StripeAccount
  /** ID of the account, for example acct_1SandboxFatura. */
  accountId: string
  /** Base address of the PDFs. */
  address: string
  /** Address of the subscribed webhook. Null without a subscription. */
  endpoint(): string | null
  /** Whether a line's subtotal includes a tax that its price includes. It is not known which way Stripe does it. */
  subtotals: 'with_tax' | 'without_tax'
}

/** `expands` says whether the request expands a field. */
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

export function renderEvent(world: World, event: StripeEvent): StripeEvent {
  if (event.data.object.object !== 'invoice') return event
  const object = withAddress(world, event.data.object as unknown as StripeInvoice)
  return { ...event, data: { ...event.data, object } }
}

/**
 * Writes the JSON for a test key or a live key. Only `livemode` differs. Text from outside cannot contain the searched characters, because
 * JSON escapes its quotes.
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

/** Creation time of the webhook endpoint, in seconds. It is constant, because a second subscription changes the existing endpoint. */
const endpointCreated = Date.UTC(2026, 9, 28) / 1000

/** Returns the subscribed endpoint, or an empty list. */
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
