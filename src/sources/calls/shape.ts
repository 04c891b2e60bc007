/** The shape of a record: a check for each field, from which its type follows. */
export type Check<T> = (value: unknown) => value is T
export type Checked<C> = C extends Check<infer T> ? T : never

/** `misfit` names the fields that are missing, or else the first that does not fit and its kind; null when all fit. */
export type Shape<T> = Check<T> & { misfit(value: unknown): string | null }

type Checks = Record<string, Check<unknown>>
type Fields<Required extends Checks, Optional extends Checks> = {
  [Name in keyof Required]: Checked<Required[Name]>
} & { [Name in keyof Optional]?: Checked<Optional[Name]> }

/** A record may have other fields too. What is no record has no field to name: its misfit is what it is. */
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

/** The kind of a value as people call it; never the value, which may be anybody's. */
function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  const kinds: Record<string, string> = { string: 'a text', number: 'a number', boolean: 'true or false' }
  return kinds[typeof value] ?? 'an object'
}

export const isText = (value: unknown): value is string => typeof value === 'string'

export const isNumber = (value: unknown): value is number => Number.isFinite(value)

/** Text that every engine can hold: without NUL, and well-formed. */
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

/** Text comes as a number now and then. */
export const isLooseText = (value: unknown): value is string | number | null =>
  isTextOrNull(value) || Number.isFinite(value)

export const isAnything = (_value: unknown): _value is unknown => true

export function isOneOf<T>(values: readonly T[]): Check<T> {
  return (value): value is T => values.includes(value as T)
}

/** A whole number from `least` up, or its digits as text, as these come now and then. */
export function isWhole(least: number, digits: RegExp): Check<number | string> {
  return (value): value is number | string =>
    typeof value === 'string' ? digits.test(value) : Number.isSafeInteger(value) && Number(value) >= least
}
