import { examples } from './examples.ts'

const ofType =
  (type: string | readonly string[]) =>
  (description: string, form: object = {}) => ({ type, ...form, description })
export const text = ofType('string')
export const textOrNull = ofType(['string', 'null'])
export const whole = ofType('integer')
export const wholeOrNull = ofType(['integer', 'null'])
export const number = ofType('number')
export const numberOrNull = ofType(['number', 'null'])
export const cents = (description: string) =>
  whole(`${description}. The amount is in the currency's smallest unit.`)
export const oneOf = (values: readonly string[], description: string) => ({
  enum: values,
  type: 'string',
  description,
})
export const refer = (name: string) => ({ $ref: name })
export const listOf = (name: string, description: string, form: object = {}) => ({
  type: 'array',
  items: refer(name),
  ...form,
  description,
})
export const texts = (description: string) => ({ type: 'array', items: { type: 'string' }, description })
export const moment = {
  format: 'date-time',
  pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$',
}
export const currency = text('Lower-case ISO 4217 currency code.', { pattern: '^[a-z]{3}$' })

/** Every field is required, except those in `optional`. */
export const object = (properties: Record<string, object>, optional: readonly string[] = []) => ({
  type: 'object',
  required: Object.keys(properties).filter(name => !optional.includes(name)),
  properties,
  additionalProperties: false,
})

export const resource = (
  name: string,
  description: string,
  properties: Record<string, object>,
  optional?: readonly string[],
) => ({
  ...object(properties, optional),
  $id: name,
  description,
  ...(examples[name] && { examples: [examples[name]] }),
})

export const dayOrNull = (description: string) => textOrNull(description, { format: 'date' })
export const centsOrNull = (description: string) =>
  wholeOrNull(
    `${description}. The amount is in the currency's smallest unit. It is null when it is not known.`,
  )
export const listOrNull = (name: string, description: string) => ({
  anyOf: [{ type: 'array', items: refer(name) }, { type: 'null' }],
  description,
})
