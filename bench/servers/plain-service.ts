/**
 * The plain service: what an expert writes in a day. Fastify with a validated query and the duties of `duties.ts`; one statement a
 * page over stored JSON, on the very tables that the service reads.
 */
import type { AddressInfo } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { createAppWithDuties } from './duties.ts'
import { sayWhere } from './listen.ts'

interface Page {
  total: number
  /** Summaries, joined by commas. */
  summaries: string | null
}

interface Store {
  hasToken(hash: string): Promise<boolean> | boolean
  listPage(customer: string, filter: Filter, limit: number, offset: number): Promise<Page> | Page
}

interface Filter {
  status: string | null
  q: string | null
}

/** The same statement on both engines; `$1` is the customer, `$2` the status, `$3` the searched text, then limit and offset. */
function pageStatement({ status, q }: Filter, found: string, joined: string): string {
  const matching = `customer_id = $1${status === null ? '' : ' AND status = $2'}${q === null ? '' : ` AND ${found}`}`
  return `
    SELECT (SELECT count(*) FROM invoices WHERE ${matching}) AS total,
      (SELECT ${joined} FROM (SELECT summary FROM invoices WHERE ${matching}
        ORDER BY issued_at DESC, id DESC LIMIT $4 OFFSET $5) AS page) AS summaries`
}

function openSqlite(path: string): Store {
  const db = new DatabaseSync(path, { readOnly: true })
  const token = db.prepare('SELECT 1 FROM tokens WHERE hash = ?')
  const pages = new Map<string, ReturnType<DatabaseSync['prepare']>>()
  return {
    hasToken: hash => token.get(hash) !== undefined,
    listPage(customer, filter, limit, offset) {
      const sql = pageStatement(filter, 'instr(search_text, $3) > 0', "group_concat(summary, ',')")
      const statement = pages.get(sql) ?? db.prepare(sql)
      pages.set(sql, statement)
      statement.setAllowUnknownNamedParameters(true)
      const { status, q } = filter
      return statement.get({ $1: customer, $2: status, $3: q, $4: limit, $5: offset }) as unknown as Page
    },
  }
}

function openPostgres(url: string): Store {
  // Plans once: what Fatura tells the planner of its tables makes it plan each call anew, for half of the statement's time.
  const options = '-c search_path=fatura -c plan_cache_mode=force_generic_plan'
  const pool = new pg.Pool({ connectionString: url, max: 10, options })
  return {
    async hasToken(hash) {
      const text = 'SELECT 1 FROM tokens WHERE hash = $1'
      return (await pool.query({ name: 'token', text, values: [hash] })).rowCount === 1
    },
    async listPage(customer, filter, limit, offset) {
      const { status, q } = filter
      const sql = pageStatement(filter, 'position($3::bytea IN search_text) > 0', "string_agg(summary, ',')")
      // Every parameter has to stand somewhere, for PostgreSQL to know its type.
      const text = `${sql} WHERE $2::text IS NULL OR $3::bytea IS NULL OR true`
      const values = [customer, status, q === null ? null : Buffer.from(q), limit, offset]
      const { rows } = await pool.query({ name: `page ${status === null} ${q === null}`, text, values })
      return { ...rows[0], total: Number(rows[0].total) }
    },
  }
}

const [, , address = ''] = process.argv
const store = address.startsWith('sqlite:')
  ? openSqlite(address.slice('sqlite:'.length))
  : openPostgres(address)

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
      status: { type: 'string', enum: ['draft', 'open', 'paid', 'void', 'uncollectible'] },
      q: { type: 'string', maxLength: 200 },
    },
  },
}

interface ListRoute {
  Params: { customerId: string }
  Querystring: { page: number; page_size: number; status?: string; q?: string }
}

const app = createAppWithDuties(hash => store.hasToken(hash))
app.get<ListRoute>('/api/v1/client/:customerId/invoices', { schema }, async (request, reply) => {
  const { page, page_size, status = null, q = null } = request.query
  const { customerId } = request.params
  const found = await store.listPage(customerId, { status, q }, page_size, (page - 1) * page_size)
  const pages = Math.ceil(found.total / page_size)
  const body = `{"invoices":[${found.summaries ?? ''}],"page":${page},"page_size":${page_size},"total":${found.total},"total_pages":${pages},"source":"synchronized_records"}`
  return reply.type('application/json').send(body)
})
await app.listen({ host: '127.0.0.1', port: 0 })
sayWhere((app.server.address() as AddressInfo).port)
