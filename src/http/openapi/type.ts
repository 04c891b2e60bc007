/**
 * TypeBox's constructors, with TypeBox's static types, for the few kinds of schema that the routes use. They make the same
 * JSON Schema. TypeBox's own are some 370 files, and loading them took longer than all else at a start of the API.
 */
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
