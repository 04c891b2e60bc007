/**
 * What the functions that read a customer's list have in common.
 *
 * A plan serves customers of every size, so whole tables are never read and indexes give the order: one customer who
 * holds most of a table must not make the planner read all of it for everybody.
 */
import { filterNames, uncountedFilters } from '../read-model/counting.ts'
import type { FilterName, InvoiceQuery } from '../store.ts'

/** Of a function that reads rows by their keys alone. Each setting costs 1 to 2 µs a call. */
export const keyAttributes = `
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog SET enable_seqscan = off`

export const attributes = `${keyAttributes} SET plan_cache_mode = force_generic_plan
  SET enable_bitmapscan = off SET enable_sort = off SET jit = off`

export const page = 'OUT total bigint, OUT page bigint, OUT summaries text'

interface FilterPart {
  parameter: string
  type: 'text' | 'bigint'
  /** What it asks of a row `i`; true of every row when it is null. */
  condition: string
}

/** Each filter as a parameter of the functions. Words have functions of their own. */
const parts: Record<Exclude<FilterName, 'words'>, FilterPart> = {
  status: { parameter: 'p_status', type: 'text', condition: '(p_status IS NULL OR i.status = p_status)' },
  ix_status: {
    parameter: 'p_ix_status',
    type: 'text',
    condition: '(p_ix_status IS NULL OR i.ix_status = p_ix_status)',
  },
  issued_from: {
    parameter: 'p_from',
    type: 'bigint',
    condition: `i.issued_at >= coalesce(p_from, ${Number.MIN_SAFE_INTEGER})`,
  },
  issued_before: {
    parameter: 'p_before',
    type: 'bigint',
    condition: `i.issued_at < coalesce(p_before, ${Number.MAX_SAFE_INTEGER})`,
  },
}

const partNames = filterNames.filter(name => name !== 'words')
const partList = partNames.map(name => parts[name])
const nameList = (names: readonly string[]) => names.map(name => parts[name as keyof typeof parts].parameter)

/** The values of a question, in the order of `filters`. */
export function filterValues(query: InvoiceQuery): unknown[] {
  return [query.customer_id, query.page, query.page_size, ...partNames.map(name => query[name])]
}

export const filters = [
  'p_customer_id text, p_page bigint, p_page_size bigint',
  ...partList.map(({ parameter, type }) => `${parameter} ${type}`),
].join(', ')
export const given = ['p_customer_id, p_page, p_page_size', ...nameList(partNames)].join(', ')

/** Whether any filter is given; and whether one is for which no counter is kept. */
export const isFiltered = `num_nonnulls(${nameList(partNames).join(', ')}) > 0`
export const isUncounted =
  uncountedFilters.length === 0 ? 'false' : `num_nonnulls(${nameList(uncountedFilters).join(', ')}) > 0`

export const ofDays = `
      i.customer_id = p_customer_id AND ${parts.issued_from.condition} AND ${parts.issued_before.condition}`

/** The rows that match the filters, but for a search. */
export const matching = `
      i.customer_id = p_customer_id AND ${partList.map(({ condition }) => condition).join(' AND ')}`

export const inOrder = 'ORDER BY i.issued_at DESC, i.id DESC'

export const clampPage = 'page := greatest(1, least(p_page, (total + p_page_size - 1) / p_page_size))'

/** The summaries of invoices by their ids, in the order of these. */
export const readSummaries = `
    SELECT string_agg((SELECT i.summary FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = k.id), ',')
    INTO summaries FROM unnest(v_ids) k (id)`
