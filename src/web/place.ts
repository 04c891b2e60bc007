/** What is looked at: filters, page, one invoice, the statement. On the page it lives in the URL; in the element, in memory. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { InvoiceFilters } from '../client/client.ts'
import { type InvoiceStatus, invoiceStatuses } from '../invoice.ts'

export const pageSizes = [10, 25, 50] as const

export interface Place {
  filters: InvoiceFilters
  page: number
  pageSize: number
  /** The invoice whose detail is shown. */
  invoice: string | null
  isStatement: boolean
  lang: string | null
}

export interface Navigation {
  place: Place
  /** A new step of the history; its address is `hrefTo`. */
  go(change: Partial<Place>): void
  /** The same step, as while somebody types. */
  adjust(change: Partial<Place>): void
  /** Null where there is no address. */
  hrefTo(change: Partial<Place>): string | undefined
}

const filterNames = ['status', 'ix_status', 'date_from', 'date_to', 'q'] as const

export function readPlace(search: string): Place {
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

/** A bookmark may be old, or typed by hand: what the service would refuse is left out. */
function isAllowed(name: (typeof filterNames)[number], value: string): boolean {
  if (name === 'status') return invoiceStatuses.includes(value as InvoiceStatus)
  if (name === 'q') return value.length <= 200
  if (name === 'ix_status') return value.length <= 255
  const day = Date.parse(value)
  return (
    /^\d{4}-\d\d-\d\d$/.test(value) && !Number.isNaN(day) && new Date(day).toISOString().startsWith(value)
  )
}

/** Parameters that are not of the place, as `pick`, stay. */
function writePlace(place: Place, search: string): string {
  const given = new URLSearchParams(search)
  const set = (name: string, value: string | null | undefined) =>
    value ? given.set(name, value) : given.delete(name)
  for (const name of filterNames) set(name, place.filters[name])
  set('page', place.page > 1 ? String(place.page) : null)
  set('page_size', place.pageSize === pageSizes[0] ? null : String(place.pageSize))
  set('invoice', place.invoice)
  set('statement', place.isStatement ? '1' : null)
  set('lang', place.lang)
  return given.size > 0 ? `?${given}` : location.pathname
}

export function useNavigation(isInUrl: boolean): Navigation {
  const [place, setPlace] = useState(() => readPlace(isInUrl ? location.search : ''))
  useEffect(() => {
    if (!isInUrl) return
    const follow = () => setPlace(readPlace(location.search))
    addEventListener('popstate', follow)
    return () => removeEventListener('popstate', follow)
  }, [isInUrl])
  return useMemo(() => {
    const move = (change: Partial<Place>, write: 'pushState' | 'replaceState') => {
      const next = { ...place, ...change }
      if (isInUrl) history[write](null, '', writePlace(next, location.search))
      setPlace(next)
    }
    return {
      place,
      go: change => move(change, 'pushState'),
      adjust: change => move(change, 'replaceState'),
      hrefTo: change => (isInUrl ? writePlace({ ...place, ...change }, location.search) : undefined),
    }
  }, [place, isInUrl])
}
