/**
 * What the functions that read a customer's list have in common.
 *
 * A plan serves customers of every size, so whole tables are never read and indexes give the order: one customer who
 * holds most of a table must not make the planner read all of it for everybody.
 */
import { dayFilters, uncountedFilters } from '../read-model/counting.ts'
import { columnOf, type FilterName, rowFilterNames, rowFilters } from '../read-model/filters.ts'
import type { InvoiceQuery } from '../store.ts'

/** Of a function that reads rows by their keys alone. Each setting costs 1 to 2 µs a call. */
export const keyAttributes = `
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog SET enable_seqscan = off`

export const attributes = `${keyAttributes} SET plan_cache_mode = force_generic_plan
  SET enable_bitmapscan = off SET enable_sort = off SET jit = off`

export const page = 'OUT total bigint, OUT page bigint, OUT summaries text'

/** What a filter asks of a row, given its value's name; true of every row when that is null. */
const conditionIfGiven = {
  '=': (column: string, value: string) => `(${value} IS NULL OR ${column} = ${value})`,
  '>=': (column: string, value: string) => `${column} >= coalesce(${value}, ${Number.MIN_SAFE_INTEGER})`,
  '<': (column: string, value: string) => `${column} < coalesce(${value}, ${Number.MAX_SAFE_INTEGER})`,
}

const parametersOf = (names: readonly FilterName[]) =>
  names.filter(name => name !== 'words').map(name => rowFilters[name].parameter)

/** The values of a question, in the order of `filters`. */
export function filterValues(query: InvoiceQuery): unknown[] {
  return [query.customer_id, query.page, query.page_size, ...rowFilterNames.map(name => query[name])]
}

/** The places of these values in a call, and of some more behind them. */
export function placesOf(more = 0): string {
  return Array.from({ length: 3 + rowFilterNames.length + more }, (_, i) => `$${i + 1}`).join(', ')
}

export const filters = [
  'p_customer_id text, p_page bigint, p_page_size bigint',
  ...rowFilterNames.map(name => `${rowFilters[name].parameter} ${rowFilters[name].type}`),
].join(', ')
export const givenFilters = parametersOf(rowFilterNames).join(', ')
export const given = `p_customer_id, p_page, p_page_size, ${givenFilters}`

/** Whether any of these filters is given. */
function isAnyGiven(names: readonly FilterName[]): string {
  return names.length === 0 ? 'false' : `num_nonnulls(${parametersOf(names).join(', ')}) > 0`
}
export const isFiltered = isAnyGiven(rowFilterNames)
/** No counter knows it. */
export const isUncounted = isAnyGiven(uncountedFilters)
/** A day's texts do not know it. */
export const isMoreThanDays = isAnyGiven(rowFilterNames.filter(name => !dayFilters.includes(name)))

/** The rows that match the filters, but for a search; `nameOf` tells how a filter's value is named. */
function match(nameOf: (parameter: string, index: number) => string): string {
  const conditions = rowFilterNames.map((name, i) => {
    const { is, parameter } = rowFilters[name]
    return conditionIfGiven[is](`i.${columnOf(name, 'postgres')}`, nameOf(parameter, i))
  })
  return conditions.join(' AND ')
}
export const matching = `
      i.customer_id = p_customer_id AND ${match(parameter => parameter)}`
/** The same within the text of a statement, which is given the customer as $1 and the filters from a place on. */
export function matchingFrom(place: number): string {
  const text = `i.customer_id = $1 AND ${match((_, i) => `$${place + i}`)}`
  return text.replaceAll("'", "''")
}

export const inOrder = 'ORDER BY i.issued_at DESC, i.id DESC'

export const clampPage = 'page := greatest(1, least(p_page, (total + p_page_size - 1) / p_page_size))'

/** The summaries of invoices by their ids, in the order of these. */
export const readSummaries = `
    SELECT string_agg((SELECT i.summary FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = k.id), ',')
    INTO summaries FROM unnest(v_ids) k (id)`
