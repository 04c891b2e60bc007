/** Checks of untrusted records. TypeScript derives a record's type from the checks of its fields. */
export type Check<T> = (value: unknown) => value is T
export type Checked<C> = C extends Check<infer T> ? T : never

/** `misfit` describes the missing fields, or else the first field of a wrong kind. It returns null when the record passes. */
export type Shape<T> = Check<T> & { misfit(value: unknown): string | null }

type Checks = Record<string, Check<unknown>>
type Fields<Required extends Checks, Optional extends Checks> = {
  [Name in keyof Required]: Checked<Required[Name]>
} & { [Name in keyof Optional]?: Checked<Optional[Name]> }

/** Checks the named fields of a record and ignores all other fields. For a value that is no record, `misfit` returns its kind. */
export function shape<Required extends Checks, Optional extends Checks = Record<never, never>>(
  required: Required,
  optional?: Optional,
): Shape<Fields<Required, Optional>> {
  const names = Object.keys(required)
  const checks = Object.entries({ ...required, ...optional })
  const misfit = (value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return `it is ${kindOf(value)}`
    const record = value as Record<string, unknown>
    const missing = names.filter(name => record[name] === undefined)
    if (missing.length > 0) return `${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} missing`
    const unfit = checks.find(([name, check]) => record[name] !== undefined && !check(record[name]))
    return unfit === undefined ? null : `${unfit[0]} is ${kindOf(record[unfit[0]])}`
  }
  const fits = (value: unknown): value is Fields<Required, Optional> => misfit(value) === null
  return Object.assign(fits, { misfit })
}

/** Names the kind of a value for a message. The value itself may be personal data and is never shown. */
function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  const kinds: Record<string, string> = { string: 'a text', number: 'a number', boolean: 'true or false' }
  return kinds[typeof value] ?? 'an object'
}

export const isText = (value: unknown): value is string => typeof value === 'string'

export const isNumber = (value: unknown): value is number => Number.isFinite(value)

/** Accepts text that both database engines can store: well-formed and without NUL. */
export const isStorable = (value: unknown): value is string =>
  typeof value === 'string' && value.isWellFormed() && !value.includes('\0')

export function isListOf<T>(check: Check<T>): Check<T[]> {
  return (value): value is T[] => Array.isArray(value) && value.every(check)
}

export function isEither<A, B>(one: Check<A>, other: Check<B>): Check<A | B> {
  return (value): value is A | B => one(value) || other(value)
}

export function isOrNull<T>(check: Check<T>): Check<T | null> {
  return (value): value is T | null => value === null || check(value)
}

export const isFilled = (value: unknown): value is string => typeof value === 'string' && value !== ''

export const isTextOrNull = isOrNull(isText)

/** Accepts a number as well, because InvoiceXpress sometimes sends a number in place of a text. */
export const isLooseText = (value: unknown): value is string | number | null =>
  isTextOrNull(value) || Number.isFinite(value)

export const isAnything = (_value: unknown): _value is unknown => true

export function isOneOf<T>(values: readonly T[]): Check<T> {
  return (value): value is T => values.includes(value as T)
}

/** Accepts a whole number of at least `min`, or its digits as text. InvoiceXpress sends both. */
export function isWhole(min: number, digits: RegExp): Check<number | string> {
  return (value): value is number | string =>
    typeof value === 'string' ? digits.test(value) : Number.isSafeInteger(value) && Number(value) >= min
}
