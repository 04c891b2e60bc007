/** A request's parameters, read as strictly as Stripe reads them; and Stripe's shape of an error. */

export interface ErrorBody {
  type: 'invalid_request_error' | 'api_error'
  code?: string
  message: string
  param?: string
}

/** An error that is sent in Stripe's shape. */
export class StripeError extends Error {
  readonly status: number
  readonly body: ErrorBody

  constructor(status: number, { code, message, param }: Omit<ErrorBody, 'type'>) {
    super(message)
    this.status = status
    this.body = {
      type: 'invalid_request_error',
      ...(code === undefined ? {} : { code }),
      message,
      ...(param === undefined ? {} : { param }),
    }
  }
}

/** An object that is not there is 404; a parameter that names one is a mistake in the request. */
export function missing(what: string, id: string, param?: string): StripeError {
  return new StripeError(param === undefined ? 404 : 400, {
    code: 'resource_missing',
    message: `No such ${what}: '${id}'`,
    param: param ?? (what === 'invoice' ? what : 'id'),
  })
}

/** What a route takes: one value, a list of them, or a value with bounds. */
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
  /** From 1 to 100, 10 when not given. */
  limit(): number
}

export function readQuery(search: URLSearchParams, allowed: Parameters): Query {
  const values = new Map<string, string[]>()
  for (const [key, value] of search) {
    const [, name = '', , inner] = /^([^[]+)(\[([^\]]*)\])?$/.exec(key) ?? []
    const kind = Object.hasOwn(allowed, name) ? allowed[name] : undefined
    if (!fits(kind, inner))
      throw new StripeError(400, {
        code: 'parameter_unknown',
        message: `Received unknown parameter: ${key}`,
        param: key,
      })
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
  return {
    one,
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

export function invalid(param: string, message: string, code?: string): StripeError {
  return new StripeError(400, { ...(code === undefined ? {} : { code }), message, param })
}

export function isWithin(value: number, { gt, gte, lt, lte }: Range): boolean {
  return (
    (gt === undefined || value > gt) &&
    (gte === undefined || value >= gte) &&
    (lt === undefined || value < lt) &&
    (lte === undefined || value <= lte)
  )
}

/** What a list is cut from: newest first means from the highest index down. */
export interface Sequence<T> {
  length: number
  at(index: number): T
  /** Where the object with this id stands; -1 when it is not there. */
  indexOf(id: string): number
  what: string
  /** Where the items that can match are, from low to before high; anywhere, when not given. */
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

/** Walks from the cursor until the page is full, and one further, to know whether there is more. */
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
  if (after !== undefined) index = placeOf(list, after, 'starting_after') - 1
  else if (before !== undefined) index = placeOf(list, before, 'ending_before') + 1
  index = step < 0 ? Math.min(index, high - 1) : Math.max(index, low)
  for (; index >= low && index < high && found.length <= limit; index += step) {
    const item = list.at(index)
    if (matches(item)) found.push(item)
  }
  const data = found.slice(0, limit)
  return { data: before === undefined ? data : data.reverse(), has_more: found.length > limit }
}

function placeOf<T>(list: Sequence<T>, id: string, param: string): number {
  const index = list.indexOf(id)
  if (index < 0) throw missing(list.what, id, param)
  return index
}
