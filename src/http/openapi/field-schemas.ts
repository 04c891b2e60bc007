/** Schemas of bodies, and of the fields that they are made of. */
import type { TSchema } from 'typebox'
import { Type } from './type.ts'

export const text = (description: string) => Type.String({ description })
const orNull =
  <T>(type: string) =>
  (description: string, form: object = {}) =>
    Type.Unsafe<T | null>({ type: [type, 'null'], ...form, description })
export const textOrNull = orNull<string>('string')
export const wholeOrNull = orNull<number>('integer')
export const numberOrNull = orNull<number>('number')
export const cents = (description: string) =>
  Type.Integer({ description: `${description}, in the currency's smallest unit.` })
export const oneOf = (values: readonly string[], description: string) =>
  Type.Enum([...values], { type: 'string', description })
export const listOf = (name: string, description: string) => Type.Array(Type.Ref(name), { description })
export const moment = {
  format: 'date-time',
  pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$',
}
export const currency = Type.String({
  pattern: '^[a-z]{3}$',
  description: 'Lower-case ISO 4217 currency code.',
})

/** A body, or a part of one, with a name. */
export function resource(
  name: string,
  description: string,
  properties: Record<string, TSchema>,
  ...examples: unknown[]
) {
  const options = { additionalProperties: false, $id: name, description }
  return Type.Object(properties, examples.length === 0 ? options : { ...options, examples })
}
