/**
 * The current view: filters, page, one invoice, or the statement. The page keeps the view in its URL. The embedded element keeps the view
 * in memory.
 */
import { useEffect, useMemo, useState } from 'preact/hooks'
import { isCalendarDay } from '../domain/calendar.ts'
import { type InvoiceStatus, invoiceStatuses, isIxStatus } from '../domain/invoice.ts'
import type { InvoiceFilters } from '../sdk/client.ts'

export const pageSizes = [10, 25, 50] as const

export interface UrlState {
  filters: InvoiceFilters
  page: number
  pageSize: number
  invoice: string | null
  isStatement: boolean
  lang: string | null
}

export type Navigation = ReturnType<typeof useNavigation>

const filterNames = ['status', 'ix_status', 'date_from', 'date_to', 'q'] as const

function readUrlState(search: string): UrlState {
  const given = new URLSearchParams(search)
  const filters: InvoiceFilters = {}
  for (const name of filterNames) {
    const value = given.get(name)?.trim()
    if (value && isAllowed(name, value)) Object.assign(filters, { [name]: value })
  }
  const size = Number(given.get('page_size'))
  return {
    filters,
    page: Math.max(1, Math.trunc(Number(given.get('page'))) || 1),
    pageSize: pageSizes.find(allowed => allowed === size) ?? pageSizes[0],
    invoice: given.get('invoice'),
    isStatement: given.has('statement'),
    lang: given.get('lang'),
  }
}

/** Whether the service accepts the value. Other values are left out, because a bookmark may be old or typed by hand. */
function isAllowed(name: (typeof filterNames)[number], value: string): boolean {
  if (name === 'status') return invoiceStatuses.includes(value as InvoiceStatus)
  if (name === 'q') return value.length <= 200
  return name === 'ix_status' ? isIxStatus(value) : isCalendarDay(value)
}

/** Keeps parameters that do not belong to the view, such as `pick`. */
function writeUrlState(state: UrlState, search: string): string {
  const given = new URLSearchParams(search)
  const set = (name: string, value: string | null | undefined) =>
    value ? given.set(name, value) : given.delete(name)
  for (const name of filterNames) set(name, state.filters[name])
  set('page', state.page > 1 ? String(state.page) : null)
  set('page_size', state.pageSize === pageSizes[0] ? null : String(state.pageSize))
  set('invoice', state.invoice)
  set('statement', state.isStatement ? '1' : null)
  set('lang', state.lang)
  return given.size > 0 ? `?${given}` : location.pathname
}

export function useNavigation(isInUrl: boolean) {
  const [state, setState] = useState(() => readUrlState(isInUrl ? location.search : ''))
  useEffect(() => {
    if (!isInUrl) return
    const follow = () => setState(readUrlState(location.search))
    addEventListener('popstate', follow)
    return () => removeEventListener('popstate', follow)
  }, [isInUrl])
  return useMemo(() => {
    const move = (change: Partial<UrlState>, write: 'pushState' | 'replaceState') => {
      const next = { ...state, ...change }
      if (isInUrl) history[write](null, '', writeUrlState(next, location.search))
      setState(next)
    }
    return {
      state,
      /** Adds an entry to the browser's history. */
      go: (change: Partial<UrlState>) => move(change, 'pushState'),
      /** Replaces the current entry of the browser's history, for example while the user types. */
      adjust: (change: Partial<UrlState>) => move(change, 'replaceState'),
      /** The address of the view after a change. Undefined in the embedded element, because its views have no address. */
      hrefTo: (change: Partial<UrlState>) =>
        isInUrl ? writeUrlState({ ...state, ...change }, location.search) : undefined,
    }
  }, [state, isInUrl])
}
