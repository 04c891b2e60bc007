/** Values by the schemas of openapi.json: the part of JSON Schema that it uses, and no other. */

export interface Schema {
  [keyword: string]: unknown
}

/** Keywords that allow every value. */
const annotations = new Set(['description', 'examples', 'contentMediaType', 'title', 'default'])

const formats: Record<string, (text: string) => boolean> = {
  date: text => /^\d{4}-\d{2}-\d{2}$/.test(text) && isMoment(`${text}T00:00:00Z`),
  'date-time': text =>
    /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/.test(text) && isMoment(text),
  uri: text => URL.canParse(text),
}

/** A day that no month has becomes one of the next month. */
function isMoment(text: string): boolean {
  const moment = new Date(text)
  return (
    !Number.isNaN(moment.getTime()) &&
    new Date(`${text.slice(0, 10)}T00:00:00Z`).toISOString().startsWith(text.slice(0, 10))
  )
}

type Check = (
  rule: never,
  value: unknown,
  context: { schema: Schema; components: unknown; path: string },
) => string[]

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const types: Record<string, (value: unknown) => boolean> = {
  object: isObject,
  array: Array.isArray,
  string: value => typeof value === 'string',
  number: value => typeof value === 'number',
  integer: Number.isInteger,
  boolean: value => typeof value === 'boolean',
  null: value => value === null,
}

const tell = (holds: boolean, path: string, what: string) => (holds ? [] : [`${path} ${what}`])

/** A rule holds for every value of another kind than it is for. */
const checks: Record<string, Check> = {
  $ref: (name: string, value, { components, path }) =>
    findFaults(resolve(name, components), value, components, path),
  type: (wanted: string | string[], value, { path }) => {
    const some = [wanted].flat()
    return tell(
      some.some(type => known(types, type)(value)),
      path,
      `is not ${some.join(' or ')}`,
    )
  },
  enum: (values: unknown[], value, { path }) => tell(values.includes(value), path, `is not one of ${values}`),
  pattern: (pattern: string, value, { path }) =>
    tell(
      typeof value !== 'string' || new RegExp(pattern, 'u').test(value),
      path,
      `does not match ${pattern}`,
    ),
  format: (format: string, value, { path }) =>
    tell(typeof value !== 'string' || known(formats, format)(value), path, `is no ${format}`),
  minimum: (least: number, value, { path }) =>
    tell(typeof value !== 'number' || value >= least, path, `is below ${least}`),
  maximum: (most: number, value, { path }) =>
    tell(typeof value !== 'number' || value <= most, path, `is above ${most}`),
  maxItems: (most: number, value, { path }) =>
    tell(!Array.isArray(value) || value.length <= most, path, `has more than ${most} items`),
  items: (schema: Schema, value, { components, path }) =>
    Array.isArray(value)
      ? value.flatMap((item, index) => findFaults(schema, item, components, `${path}[${index}]`))
      : [],
  required: (names: string[], value, { path }) =>
    isObject(value)
      ? names.flatMap(name => tell(Object.hasOwn(value, name), `${path}.${name}`, 'is missing'))
      : [],
  properties: (properties: Record<string, Schema>, value, { components, path }) =>
    isObject(value)
      ? Object.entries(properties).flatMap(([name, schema]) =>
          Object.hasOwn(value, name) ? findFaults(schema, value[name], components, `${path}.${name}`) : [],
        )
      : [],
  additionalProperties: (allowed: boolean, value, { schema, path }) => {
    if (typeof allowed !== 'boolean') throw new Error('A schema of additional properties is not understood.')
    if (allowed || !isObject(value)) return []
    const names = Object.keys((schema.properties as object | undefined) ?? {})
    return Object.keys(value).flatMap(name =>
      tell(names.includes(name), `${path}.${name}`, 'is not described'),
    )
  },
  anyOf: (some: Schema[], value, { components, path }) => {
    const faults = some.map(schema => findFaults(schema, value, components, path))
    return faults.some(({ length }) => length === 0) ? [] : faults.flat()
  },
}

function known<Value>(all: Record<string, Value>, name: string): Value {
  if (!Object.hasOwn(all, name)) throw new Error(`A schema's ${name} is not understood.`)
  return all[name] as Value
}

function resolve(name: string, components: unknown): Schema {
  const [, kind = '', own = ''] = /^#\/components\/(\w+)\/(\w+)$/.exec(name) ?? []
  return known(known(components as Record<string, Record<string, Schema>>, kind), own)
}

/** What a value has against it by a schema; nothing when it fits. Throws when a schema says what is not understood here. */
export function findFaults(schema: Schema, value: unknown, components: unknown = {}, path = 'it'): string[] {
  return Object.entries(schema).flatMap(([keyword, rule]) =>
    annotations.has(keyword)
      ? []
      : known(checks, keyword)(rule as never, value, { schema, components, path }),
  )
}
