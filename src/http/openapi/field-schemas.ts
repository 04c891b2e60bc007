/** Schemas of the fields that bodies are made of. */
import { Type } from './type.ts'

export const text = (description: string) => Type.String({ description })
export const textOrNull = (description: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], description })
export const wholeOrNull = (description: string) =>
  Type.Unsafe<number | null>({ type: ['integer', 'null'], description })
export const cents = (description: string) =>
  Type.Integer({ description: `${description}, in the currency's smallest unit.` })
export const moment = {
  format: 'date-time',
  pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$',
}
export const closed = { additionalProperties: false }
export const currency = Type.String({
  pattern: '^[a-z]{3}$',
  description: 'Lower-case ISO 4217 currency code.',
})
