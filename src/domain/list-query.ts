/** The list's parameters: filters and pages. */
import type { Expansion } from './expanded.ts'
import type { InvoiceStatus } from './invoice.ts'

/** Filters of a list, named like the request's parameters. An undefined or empty filter does not apply. */
export interface InvoiceFilters {
  status?: InvoiceStatus | undefined
  ix_status?: string | undefined
  /** `date_from` and `date_to` are UTC days, YYYY-MM-DD, both included. */
  date_from?: string | undefined
  date_to?: string | undefined
  q?: string | undefined
}

export interface ListQuery extends InvoiceFilters {
  page?: number | undefined
  /** Number of invoices on a page, 1 to 50. */
  page_size?: number | undefined
  expand?: readonly Expansion[] | undefined
}

const parameters: Readonly<Record<keyof ListQuery, true>> = {
  page: true,
  page_size: true,
  status: true,
  ix_status: true,
  date_from: true,
  date_to: true,
  q: true,
  expand: true,
}
export const listParameters = Object.keys(parameters)

export const defaultPageSize = 10
export const maxPageSize = 50

/** Returns a page number of at least 1. The store lowers a number above the last page to the last page. */
export function clampPage(page = 1): number {
  return Math.min(Math.max(page, 1), Number.MAX_SAFE_INTEGER)
}

export function clampPageSize(size = defaultPageSize): number {
  return size < 1 ? defaultPageSize : Math.min(size, maxPageSize)
}

export function countPages(total: number, pageSize: number): number {
  return Math.ceil(total / pageSize)
}
