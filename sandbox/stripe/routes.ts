/** Routes of the local Stripe and their answers. */
import { invoiceStatuses } from '../../src/domain/invoice.ts'
import type { RouteName } from '../faults.ts'
import { createPdf } from '../pdf.ts'
import type { ServedRoute } from '../serving.ts'
import type { StripeAccount } from './account.ts'
import type { StripeEvent, StripeInvoice } from './objects.ts'
import { writePaymentPage } from './payment-page.ts'
import {
  invalid,
  isWithin,
  missing,
  type Parameters,
  pageParameters,
  type Query,
  readPage,
  type Sequence,
} from './query.ts'
import { renderEndpoints, renderEvent, renderInvoice, renderLine, type World } from './render.ts'

export const permissions = [
  'invoices',
  'customers',
  'events',
  'tax_rates',
  'webhook_endpoints',
  'account',
  'invoice_payments',
] as const
export type Permission = (typeof permissions)[number]

export interface Route extends ServedRoute {
  name: RouteName | OtherRoute
  parameters: Parameters
  /** Fields that a request may expand. Default: none. */
  expandable?: readonly string[]
  permission?: Permission
  /** Returns a JSON value, the bytes of a PDF, or the text of a page. */
  answer(world: World, query: Query, id: string, secret: string): object | Buffer | string
}

/** Routes without a fault of their own. Only a fault of the route `*` affects them. */
type OtherRoute =
  | 'list_invoice_payments'
  | 'retrieve_event'
  | 'list_customers'
  | 'list_tax_rates'
  | 'list_webhook_endpoints'
  | 'payment_page'
  | 'pay'

const eventDays = 30

const retrieve = (
  name: Route['name'],
  permission: Permission,
  find: (world: World, id: string, query: Query) => object | undefined,
): Route => ({
  name,
  permission,
  path: new RegExp(`^/v1/${permission}/([^/]+)$`),
  parameters: { expand: 'many' },
  answer(world, query, id) {
    const found = find(world, id, query)
    if (found === undefined) throw missing(name.slice('retrieve_'.length), id)
    return found
  },
})

const listAll = (
  name: Route['name'],
  permission: Permission,
  answer: Route['answer'],
  filters: Parameters = {},
): Route => ({
  name,
  permission,
  path: new RegExp(`^/v1/${permission}$`),
  parameters: { ...pageParameters, ...filters },
  answer,
})

/** Stripe's hosted invoice page. A POST to this address pays the invoice. */
const paymentPage = { path: /^\/i\/([^/]+)\/([^/]+)$/, parameters: {}, isOpen: true } as const

export const routes: readonly Route[] = [
  {
    ...listAll('list_invoices', 'invoices', listInvoices, {
      created: 'range',
      status: 'one',
      customer: 'one',
    }),
    expandable: ['data.customer', 'data.payments'],
  },
  {
    ...retrieve('retrieve_invoice', 'invoices', (world, id, query) => {
      const invoice = world.account.invoices.get(id)
      return invoice && renderInvoice(world, invoice, query.expands)
    }),
    expandable: ['customer', 'payments'],
  },
  {
    name: 'list_lines',
    permission: 'invoices',
    path: /^\/v1\/invoices\/([^/]+)\/lines$/,
    parameters: pageParameters,
    answer(world, query, id) {
      const invoice = world.account.invoices.get(id)
      if (invoice === undefined) throw missing('invoice', id)
      const lines = sequenceOf('line item', invoice.lines.data.toReversed())
      return list(`/v1/invoices/${id}/lines`, query, lines, undefined, line => renderLine(world, line))
    },
  },
  listAll('list_invoice_payments', 'invoice_payments', listPayments, { invoice: 'one' }),
  listAll('list_events', 'events', listEvents, { created: 'range', type: 'one', types: 'many' }),
  retrieve('retrieve_event', 'events', (world, id) => {
    const event = recentEvents(world).find(event => event.id === id)
    return event && renderEvent(world, event)
  }),
  listAll('list_customers', 'customers', listCustomers, { created: 'range', email: 'one' }),
  retrieve('retrieve_customer', 'customers', ({ account }, id) => account.customers.get(id)),
  listAll('list_tax_rates', 'tax_rates', ({ account }, query) =>
    list('/v1/tax_rates', query, sequenceOf('tax_rate', [...account.taxRates.values()])),
  ),
  retrieve('retrieve_tax_rate', 'tax_rates', ({ account }, id) => account.taxRates.get(id)),
  listAll('list_webhook_endpoints', 'webhook_endpoints', (world, query) =>
    list('/v1/webhook_endpoints', query, sequenceOf('webhook_endpoint', renderEndpoints(world))),
  ),
  {
    name: 'retrieve_account',
    permission: 'account',
    path: /^\/v1\/account$/,
    parameters: { expand: 'many' },
    // The account has no `livemode`. An account has both modes, and a key belongs to one mode.
    answer: ({ accountId }) => ({
      id: accountId,
      object: 'account',
      business_type: 'company',
      country: 'PT',
      default_currency: 'eur',
      email: null,
      settings: { dashboard: { display_name: 'Sandbox, Lda.', timezone: 'Europe/Lisbon' } },
      type: 'standard',
    }),
  },
  {
    name: 'pdf',
    path: /^\/pdf\/([^/]+)\/([^/]+)\.pdf$/,
    parameters: { s: 'one' },
    isOpen: true,
    answer({ account }, _query, id, secret) {
      const invoice = account.invoices.get(id)
      if (!invoice?.invoice_pdf?.startsWith(`/pdf/${id}/${secret}.pdf`)) throw missing('document', id)
      return createPdf(invoice)
    },
  },
  {
    ...paymentPage,
    name: 'payment_page',
    answer: ({ account }, _query, id, secret) => writePaymentPage(findHosted(account, id, secret)),
  },
  {
    ...paymentPage,
    name: 'pay',
    method: 'POST',
    answer({ account }, _query, id, secret) {
      if (findHosted(account, id, secret).status === 'open') account.change('pay', id)
      return writePaymentPage(findHosted(account, id, secret))
    },
  },
]

function findHosted({ invoices }: StripeAccount, id: string, secret: string): StripeInvoice {
  const invoice = invoices.get(id)
  if (invoice?.hosted_invoice_url !== `/i/${id}/${secret}`) throw missing('invoice', id)
  return invoice
}

function listInvoices(world: World, query: Query): object {
  const { account } = world
  const created = query.range('created')
  const status = query.one('status')
  const customer = query.one('customer')
  if (status !== undefined && !(invoiceStatuses as readonly string[]).includes(status))
    throw invalid('status', `Invalid status: must be one of draft, open, paid, uncollectible, or void`)
  if (customer !== undefined && !account.customers.has(customer))
    throw missing('customer', customer, 'customer')
  const sequence: Sequence<StripeInvoice> = {
    what: 'invoice',
    length: account.order.length,
    at: index => account.invoices.get(account.order.at(index)) as StripeInvoice,
    indexOf(id) {
      const invoice = account.invoices.get(id)
      return invoice === undefined ? -1 : account.order.positionOf(invoice)
    },
    // A binary search finds the bounds, so that an old part of a long list is as fast as a new one.
    bounds: {
      low: account.order.positionOf({ id: '', created: Math.max(created.gte ?? 0, (created.gt ?? -1) + 1) }),
      high: account.order.positionOf({
        id: '',
        created: Math.min(
          created.lt ?? Number.MAX_SAFE_INTEGER,
          (created.lte ?? Number.MAX_SAFE_INTEGER) + 1,
        ),
      }),
    },
  }
  return list(
    '/v1/invoices',
    query,
    sequence,
    invoice =>
      isWithin(invoice.created, created) &&
      (status === undefined || invoice.status === status) &&
      (customer === undefined || invoice.customer === customer),
    invoice => renderInvoice(world, invoice, query.expands),
  )
}

/** Lists the payments of one invoice. The sandbox does not list the payments of a whole account. */
function listPayments({ account }: World, query: Query): object {
  const id = query.one('invoice')
  if (id === undefined) throw invalid('invoice', 'The sandbox lists the payments of one invoice alone.')
  const invoice = account.invoices.get(id)
  if (invoice === undefined) throw missing('invoice', id, 'invoice')
  const payments = invoice.payments.data.toReversed()
  return list('/v1/invoice_payments', query, sequenceOf('invoice_payment', payments))
}

function listEvents(world: World, query: Query): object {
  const created = query.range('created')
  const isWanted = readTypes(query)
  return list(
    '/v1/events',
    query,
    sequenceOf('event', recentEvents(world)),
    event => isWithin(event.created, created) && isWanted(event.type),
    event => renderEvent(world, event),
  )
}

function listCustomers({ account }: World, query: Query): object {
  const created = query.range('created')
  const email = query.one('email')
  const living = [...account.customers.values()].filter(customer => !customer.deleted)
  return list(
    '/v1/customers',
    query,
    sequenceOf('customer', living),
    customer => isWithin(customer.created, created) && (email === undefined || customer.email === email),
  )
}

function list<T>(
  url: string,
  query: Query,
  sequence: Sequence<T>,
  matches: (item: T) => boolean = () => true,
  render: (item: T) => unknown = item => item,
): object {
  const { data, has_more } = readPage(query, sequence, matches)
  return { object: 'list', url, has_more, data: data.map(render) }
}

function sequenceOf<T extends { id: string }>(what: string, items: T[]): Sequence<T> {
  return {
    what,
    length: items.length,
    at: index => items[index] as T,
    indexOf: id => items.findIndex(item => item.id === id),
  }
}

/** Stripe returns events of the last 30 days only. */
function recentEvents({ account }: World): StripeEvent[] {
  const oldest = account.clock - eventDays * 86_400
  return account.events.filter(({ created }) => created >= oldest)
}

const maxTypes = 20
const eventName = /^[a-z0-9_]+(\.[a-z0-9_]+)+$/

/** As at Stripe, `type` is one name or a group that ends in a star. `types` has up to 20 names without a star. */
function readTypes(query: Query): (type: string) => boolean {
  const type = query.one('type')
  const types = query.many('types')
  if (type !== undefined && types.length > 0)
    throw invalid('type', 'You may only specify one of these parameters: type, types.')
  if (types.length > maxTypes)
    throw invalid('types', `Invalid array: there may be at most ${maxTypes} event types`)
  for (const name of types) if (!eventName.test(name)) throw invalid('types', `Invalid event type: ${name}`)
  if (type === undefined) return name => types.length === 0 || types.includes(name)
  const [, group] = /^((?:[a-z0-9_]+\.)*)\*$/.exec(type) ?? []
  if (group === undefined && !eventName.test(type)) throw invalid('type', `Invalid event type: ${type}`)
  return name => (group === undefined ? name === type : name.startsWith(group))
}
