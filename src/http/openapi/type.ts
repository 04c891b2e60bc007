/** The few constructors of TypeBox that the routes use, with its types: loading all 370 files took longer than a start. */
import type TypeBox from 'typebox'

type Schema = Record<string, unknown>

const optionals = new WeakSet<object>()

const constructors = {
  String: (options?: Schema) => ({ type: 'string', ...options }),
  Integer: (options?: Schema) => ({ type: 'integer', ...options }),
  Number: (options?: Schema) => ({ type: 'number', ...options }),
  Enum: (values: readonly unknown[], options?: Schema) => ({ enum: values, ...options }),
  Array: (items: Schema, options?: Schema) => ({ type: 'array', items, ...options }),
  Ref: ($ref: string) => ({ $ref }),
  Unsafe: (schema: Schema) => schema,
  Optional(schema: Schema) {
    const optional = { ...schema }
    optionals.add(optional)
    return optional
  },
  Object(properties: Record<string, Schema>, options?: Schema) {
    const required = Object.keys(properties).filter(name => !optionals.has(properties[name] as Schema))
    return { type: 'object', ...(required.length > 0 && { required }), properties, ...options }
  },
}

export const Type = constructors as unknown as Pick<typeof TypeBox, keyof typeof constructors>
