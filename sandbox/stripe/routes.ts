/** Every address of the local Stripe and what it answers. */
import type { RouteName } from '../faults.ts'
import { createPdf } from '../pdf.ts'
import type { StripeEvent, StripeInvoice, StripeLine } from './objects.ts'
import type { Permission } from './permissions.ts'
import {
  invalid,
  isWithin,
  missing,
  type Page,
  type Parameters,
  pageParameters,
  type Query,
  readPage,
  type Sequence,
  StripeError,
} from './query.ts'
import { renderEndpoints, renderEvent, renderInvoice, type World } from './render.ts'

export interface Route {
  name: RouteName | OtherRoute
  path: RegExp
  parameters: Parameters
  permission?: Permission
  /** Read without a key: its address holds a secret. */
  isOpen?: true
  /** A JSON value, or the bytes of a PDF. */
  answer(world: World, query: Query, id: string, secret: string): object | Buffer
}

/** Those that faults reach only by `*`. */
type OtherRoute = 'retrieve_event' | 'list_customers' | 'list_tax_rates' | 'list_webhook_endpoints'

const retrieving: Parameters = { expand: 'many' }
const eventDays = 30

export const routes: readonly Route[] = [
  {
    name: 'list_invoices',
    permission: 'invoices',
    path: /^\/v1\/invoices$/,
    parameters: { ...pageParameters, created: 'range', status: 'one', customer: 'one' },
    answer: listInvoices,
  },
  {
    name: 'retrieve_invoice',
    permission: 'invoices',
    path: /^\/v1\/invoices\/([^/]+)$/,
    parameters: retrieving,
    answer: (world, query, id) => renderInvoice(world, findInvoice(world, id), isExpanded(query, 'customer')),
  },
  {
    name: 'list_lines',
    permission: 'invoices',
    path: /^\/v1\/invoices\/([^/]+)\/lines$/,
    parameters: pageParameters,
    answer: listLines,
  },
  {
    name: 'list_events',
    permission: 'events',
    path: /^\/v1\/events$/,
    parameters: { ...pageParameters, created: 'range', type: 'one', types: 'many' },
    answer: listEvents,
  },
  {
    name: 'retrieve_event',
    permission: 'events',
    path: /^\/v1\/events\/([^/]+)$/,
    parameters: retrieving,
    answer(world, query, id) {
      isExpanded(query)
      const event = recentEvents(world).find(event => event.id === id)
      if (event === undefined) throw missing('event', id)
      return renderEvent(world, event)
    },
  },
  {
    name: 'list_customers',
    permission: 'customers',
    path: /^\/v1\/customers$/,
    parameters: { ...pageParameters, created: 'range', email: 'one' },
    answer: listCustomers,
  },
  {
    name: 'retrieve_customer',
    permission: 'customers',
    path: /^\/v1\/customers\/([^/]+)$/,
    parameters: retrieving,
    answer({ account }, query, id) {
      isExpanded(query)
      const customer = account.customers.get(id)
      if (customer === undefined) throw missing('customer', id)
      return customer
    },
  },
  {
    name: 'list_tax_rates',
    permission: 'tax_rates',
    path: /^\/v1\/tax_rates$/,
    parameters: pageParameters,
    answer({ account }, query) {
      isExpanded(query)
      const rates = sequenceOf('tax_rate', [...account.taxRates.values()])
      return list('/v1/tax_rates', readPage(query, rates, everything), same)
    },
  },
  {
    name: 'list_webhook_endpoints',
    permission: 'webhook_endpoints',
    path: /^\/v1\/webhook_endpoints$/,
    parameters: pageParameters,
    answer(world, query) {
      isExpanded(query)
      const endpoints = sequenceOf('webhook_endpoint', renderEndpoints(world))
      return list('/v1/webhook_endpoints', readPage(query, endpoints, everything), same)
    },
  },
  {
    name: 'retrieve_tax_rate',
    permission: 'tax_rates',
    path: /^\/v1\/tax_rates\/([^/]+)$/,
    parameters: retrieving,
    answer({ account }, query, id) {
      isExpanded(query)
      const rate = account.taxRates.get(id)
      if (rate === undefined) throw missing('tax_rate', id)
      return rate
    },
  },
  {
    name: 'retrieve_account',
    permission: 'account',
    path: /^\/v1\/account$/,
    parameters: retrieving,
    answer({ accountId }, query) {
      isExpanded(query)
      // It tells no mode: an account has both, and a key is of one.
      return {
        id: accountId,
        object: 'account',
        business_type: 'company',
        country: 'PT',
        default_currency: 'eur',
        email: null,
        settings: { dashboard: { display_name: 'Sandbox, Lda.', timezone: 'Europe/Lisbon' } },
        type: 'standard',
      }
    },
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
]

function listInvoices(world: World, query: Query): object {
  const { account } = world
  const created = query.range('created')
  const status = query.one('status')
  const customer = query.one('customer')
  const expanded = isExpanded(query, 'data.customer')
  if (status !== undefined && !['draft', 'open', 'paid', 'uncollectible', 'void'].includes(status))
    throw invalid('status', `Invalid status: must be one of draft, open, paid, uncollectible, or void`)
  if (customer !== undefined && !account.customers.has(customer))
    throw missing('customer', customer, 'customer')
  const sequence: Sequence<StripeInvoice> = {
    what: 'invoice',
    length: account.order.length,
    at: index => account.invoices.get(account.order.at(index)) as StripeInvoice,
    indexOf(id) {
      const invoice = account.invoices.get(id)
      return invoice === undefined ? -1 : account.order.place(invoice)
    },
    // Found, not walked to: an old part of a long list costs what a new one does.
    bounds: {
      low: account.order.place({ id: '', created: Math.max(created.gte ?? 0, (created.gt ?? -1) + 1) }),
      high: account.order.place({
        id: '',
        created: Math.min(
          created.lt ?? Number.MAX_SAFE_INTEGER,
          (created.lte ?? Number.MAX_SAFE_INTEGER) + 1,
        ),
      }),
    },
  }
  const page = readPage(
    query,
    sequence,
    invoice =>
      isWithin(invoice.created, created) &&
      (status === undefined || invoice.status === status) &&
      (customer === undefined || invoice.customer === customer),
  )
  return list('/v1/invoices', page, invoice => renderInvoice(world, invoice, expanded))
}

function listLines(world: World, query: Query, id: string): object {
  isExpanded(query)
  const lines = findInvoice(world, id).lines.data.toReversed()
  return list(`/v1/invoices/${id}/lines`, readPage(query, sequenceOf('line item', lines), everything), same)
}

function listEvents(world: World, query: Query): object {
  isExpanded(query)
  const created = query.range('created')
  const isWanted = readTypes(query)
  const page = readPage(
    query,
    sequenceOf('event', recentEvents(world)),
    event => isWithin(event.created, created) && isWanted(event.type),
  )
  return list('/v1/events', page, event => renderEvent(world, event))
}

function listCustomers({ account }: World, query: Query): object {
  isExpanded(query)
  const created = query.range('created')
  const email = query.one('email')
  const living = [...account.customers.values()].filter(customer => !customer.deleted)
  const page = readPage(
    query,
    sequenceOf('customer', living),
    customer => isWithin(customer.created, created) && (email === undefined || customer.email === email),
  )
  return list('/v1/customers', page, same)
}

function list<T>(url: string, { data, has_more }: Page<T>, render: (item: T) => unknown): object {
  return { object: 'list', url, has_more, data: data.map(render) }
}

const same = (item: unknown) => item
const everything = () => true

function sequenceOf<T extends StripeLine | StripeEvent | { id: string }>(
  what: string,
  items: T[],
): Sequence<T> {
  return {
    what,
    length: items.length,
    at: index => items[index] as T,
    indexOf: id => items.findIndex(item => item.id === id),
  }
}

/** What is older is not answered for any more. */
function recentEvents({ account }: World): StripeEvent[] {
  const oldest = account.clock - eventDays * 86_400
  return account.events.filter(({ created }) => created >= oldest)
}

const mostTypes = 20
const eventName = /^[a-z0-9_]+(\.[a-z0-9_]+)+$/

/** As Stripe has it: `type` is one name, or a group of them with a star; `types` are up to 20 names, without any star. */
function readTypes(query: Query): (type: string) => boolean {
  const type = query.one('type')
  const types = query.many('types')
  if (type !== undefined && types.length > 0)
    throw invalid('type', 'You may only specify one of these parameters: type, types.')
  if (types.length > mostTypes)
    throw invalid('types', `Invalid array: there may be at most ${mostTypes} event types`)
  for (const name of types) if (!eventName.test(name)) throw invalid('types', `Invalid event type: ${name}`)
  if (type === undefined) return name => types.length === 0 || types.includes(name)
  const [, group] = /^((?:[a-z0-9_]+\.)*)\*$/.exec(type) ?? []
  if (group === undefined && !eventName.test(type)) throw invalid('type', `Invalid event type: ${type}`)
  return name => (group === undefined ? name === type : name.startsWith(group))
}

function findInvoice({ account }: World, id: string): StripeInvoice {
  const invoice = account.invoices.get(id)
  if (invoice === undefined) throw missing('invoice', id)
  return invoice
}

/** Whether the request asks to expand this, and nothing else. */
function isExpanded(query: Query, field?: string): boolean {
  const asked = query.many('expand')
  for (const other of asked)
    if (other !== field)
      throw new StripeError(400, { message: `This property cannot be expanded (${other}).`, param: 'expand' })
  return asked.length > 0
}
