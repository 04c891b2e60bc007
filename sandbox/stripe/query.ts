/** Reads the parameters of a request as strictly as Stripe does, and writes errors in Stripe's shape. */
import { SandboxError } from '../spoil.ts'

export function stripeError(status: number, message: string, code?: string, param?: string): SandboxError {
  const error = { type: 'invalid_request_error', ...(code && { code }), message, ...(param && { param }) }
  return new SandboxError(status, message, { error })
}

/** Returns a 404 for a missing object, and a 400 when a parameter of the request names the object. */
export function missing(what: string, id: string, param?: string): SandboxError {
  const named = param ?? (what === 'invoice' ? what : 'id')
  return stripeError(param === undefined ? 404 : 400, `No such ${what}: '${id}'`, 'resource_missing', named)
}

/** Parameters of a route. `range` is a value with bounds such as `created[gte]`. */
export type Parameters = Record<string, 'one' | 'many' | 'range'>

export interface Range {
  gt?: number
  gte?: number
  lt?: number
  lte?: number
}

export interface Query {
  one(name: string): string | undefined
  many(name: string): string[]
  range(name: string): Range
  /** Page size from 1 to 100. Default: 10. */
  limit(): number
  /** Whether the request expands a field of the object, or of each object in a list. */
  expands(field: string): boolean
}

export function readQuery(
  search: URLSearchParams,
  allowed: Parameters,
  expandable: readonly string[] = [],
): Query {
  const values = new Map<string, string[]>()
  for (const [key, value] of search) {
    const [, name = '', , inner] = /^([^[]+)(\[([^\]]*)\])?$/.exec(key) ?? []
    const kind = Object.hasOwn(allowed, name) ? allowed[name] : undefined
    if (!fits(kind, inner)) throw invalid(key, `Received unknown parameter: ${key}`, 'parameter_unknown')
    if (value === '')
      throw invalid(key, `You passed an empty string for '${key}'.`, 'parameter_invalid_empty')
    const slot = kind === 'many' ? name : key
    if (kind !== 'many' && values.has(slot)) throw invalid(key, `Received twice: ${key}`)
    values.set(slot, [...(values.get(slot) ?? []), value])
  }
  const one = (name: string) => values.get(name)?.[0]
  const whole = (name: string): number | undefined => {
    const text = one(name)
    if (text === undefined) return undefined
    if (!/^-?\d{1,15}$/.test(text))
      throw invalid(name, `Invalid integer: ${text}`, 'parameter_invalid_integer')
    return Number(text)
  }
  const moment = (name: string): number | undefined => {
    const seconds = whole(name)
    if (seconds !== undefined && seconds < 0) throw invalid(name, `Invalid timestamp: ${seconds}`)
    return seconds
  }
  const expand = values.get('expand') ?? []
  for (const field of expand)
    if (!expandable.includes(field)) throw invalid('expand', `This property cannot be expanded (${field}).`)
  return {
    one,
    expands: field => expand.includes(field) || expand.includes(`data.${field}`),
    many: name => values.get(name) ?? [],
    range(name) {
      const range: Range = {}
      for (const bound of bounds) {
        const value = moment(`${name}[${bound}]`)
        if (value !== undefined) range[bound] = value
      }
      const exact = moment(name)
      if (exact === undefined) return range
      if (Object.keys(range).length > 0) throw invalid(name, `Invalid ${name}: a moment, or bounds, not both`)
      return { gte: exact, lte: exact }
    },
    limit() {
      const limit = whole('limit') ?? 10
      if (limit < 1 || limit > 100) throw invalid('limit', 'This value must be between 1 and 100.')
      return limit
    },
  }
}

const bounds = ['gt', 'gte', 'lt', 'lte'] as const

function fits(kind: Parameters[string] | undefined, inner: string | undefined): boolean {
  if (kind === 'many') return inner !== undefined && /^\d*$/.test(inner)
  if (kind === 'range') return inner === undefined || (bounds as readonly string[]).includes(inner)
  return kind === 'one' && inner === undefined
}

export function invalid(param: string, message: string, code?: string): SandboxError {
  return stripeError(400, message, code, param)
}

export function isWithin(value: number, { gt, gte, lt, lte }: Range): boolean {
  return (
    (gt === undefined || value > gt) &&
    (gte === undefined || value >= gte) &&
    (lt === undefined || value < lt) &&
    (lte === undefined || value <= lte)
  )
}

export interface Sequence<T> {
  length: number
  at(index: number): T
  /** Returns -1 when no item has the id. */
  indexOf(id: string): number
  what: string
  /** Range of indexes that can match, from `low` to before `high`. Default: all items. */
  bounds?: { low: number; high: number }
}

export interface Page<T> {
  data: T[]
  has_more: boolean
}

export const pageParameters: Parameters = {
  limit: 'one',
  starting_after: 'one',
  ending_before: 'one',
  expand: 'many',
}

/** Reads from the cursor until the page is full. One more match is read to set `has_more`. */
export function readPage<T>(query: Query, list: Sequence<T>, matches: (item: T) => boolean): Page<T> {
  const limit = query.limit()
  const after = query.one('starting_after')
  const before = query.one('ending_before')
  if (after !== undefined && before !== undefined)
    throw invalid('starting_after', 'Only one of starting_after and ending_before may be given.')
  const found: T[] = []
  const step = before === undefined ? -1 : 1
  const { low, high } = list.bounds ?? { low: 0, high: list.length }
  let index = list.length - 1
  const cursor = after ?? before
  if (cursor !== undefined) {
    index = list.indexOf(cursor)
    if (index < 0) throw missing(list.what, cursor, after === undefined ? 'ending_before' : 'starting_after')
    index += step
  }
  index = step < 0 ? Math.min(index, high - 1) : Math.max(index, low)
  for (; index >= low && index < high && found.length <= limit; index += step) {
    const item = list.at(index)
    if (matches(item)) found.push(item)
  }
  const data = found.slice(0, limit)
  return { data: before === undefined ? data : data.reverse(), has_more: found.length > limit }
}
