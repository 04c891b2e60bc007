/**
 * The peer: what one writes with Fastify and Drizzle when asked for a fast list. Prepared statements, count and page
 * side by side on a pool, parameters validated, the answer serialised by its schema, and the duties of `duties.ts`.
 */
import type { AddressInfo } from 'node:net'
import { and, count, desc, eq, ilike, or, type SQL, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import pg from 'pg'
import { invoices, tokens } from '../seed/peer-table.ts'
import { createAppWithDuties } from './duties.ts'
import { sayWhere } from './listen.ts'

const db = drizzle(new pg.Pool({ connectionString: process.argv[2], max: 10 }))
const ofCustomer = eq(invoices.customer_id, sql.placeholder('customer'))
const prepare = (name: string, where: SQL | undefined) => ({
  countAll: db.select({ total: count() }).from(invoices).where(where).prepare(`count_${name}`),
  listPage: db
    .select()
    .from(invoices)
    .where(where)
    .orderBy(desc(invoices.issued_at), desc(invoices.id))
    .limit(sql.placeholder('limit'))
    .offset(sql.placeholder('offset'))
    .prepare(`list_${name}`),
})
const findToken = db
  .select({ hash: tokens.hash })
  .from(tokens)
  .where(eq(tokens.hash, sql.placeholder('hash')))
  .prepare('find_token')
const every = prepare('every', ofCustomer)
const { number, display_name, customer_name, customer_email, company_name, customer_tax_id } = invoices
const sought = [number, display_name, customer_name, customer_email, company_name, customer_tax_id]
const found = prepare(
  'found',
  and(ofCustomer, or(...sought.map(column => ilike(column, sql.placeholder('q'))))),
)
const ofStatus = prepare('of_status', and(ofCustomer, eq(invoices.status, sql.placeholder('status'))))

const text = { type: 'string' }
const nullableText = { type: ['string', 'null'] }
const moment = { type: 'string', format: 'date-time' }
const nullableMoment = { type: ['string', 'null'], format: 'date-time' }
const whole = { type: 'integer' }
const invoice = {
  type: 'object',
  properties: {
    id: text,
    number: nullableText,
    display_name: text,
    customer_name: nullableText,
    customer_id: text,
    customer_email: nullableText,
    company_name: nullableText,
    customer_tax_id: nullableText,
    issued_at: moment,
    ix_created_at: nullableMoment,
    subtotal_cents: whole,
    discount_cents: whole,
    tax_cents: whole,
    tax_percent: { type: ['number', 'null'] },
    total_cents: whole,
    currency: text,
    status: text,
    ix_sync_state: text,
    ix_id: { type: ['integer', 'null'] },
    ix_status: nullableText,
  },
}
const schema = {
  params: {
    type: 'object',
    properties: { customerId: { type: 'string', pattern: '^cus_[A-Za-z0-9_-]{1,251}$' } },
  },
  querystring: {
    type: 'object',
    properties: {
      page: { type: 'integer', minimum: 1, default: 1 },
      page_size: { type: 'integer', minimum: 1, maximum: 50, default: 10 },
      status: { type: 'string' },
      q: { type: 'string', maxLength: 200 },
    },
  },
  response: {
    200: {
      type: 'object',
      properties: {
        invoices: { type: 'array', items: invoice },
        page: whole,
        page_size: whole,
        total: whole,
        total_pages: whole,
        source: text,
      },
    },
  },
}

interface ListRoute {
  Params: { customerId: string }
  Querystring: { page: number; page_size: number; status?: string; q?: string }
}

const app = createAppWithDuties(async hash => (await findToken.execute({ hash })).length === 1)
app.get<ListRoute>('/api/v1/client/:customerId/invoices', { schema }, async request => {
  const { page, page_size, status, q } = request.query
  const customer = request.params.customerId
  const { countAll, listPage } = q !== undefined ? found : status === undefined ? every : ofStatus
  const [totals, rows] = await Promise.all([
    countAll.execute({ customer, status, q: `%${q}%` }),
    listPage.execute({ customer, status, q: `%${q}%`, limit: page_size, offset: (page - 1) * page_size }),
  ])
  const total = totals[0]?.total ?? 0
  const total_pages = Math.ceil(total / page_size)
  return { invoices: rows, page, page_size, total, total_pages, source: 'synchronized_records' }
})
await app.listen({ host: '127.0.0.1', port: 0 })
sayWhere((app.server.address() as AddressInfo).port)
