/** Reads path and query parameters strictly by their route's schema. Nothing is guessed or dropped. */

import type { FastifySchemaCompiler } from 'fastify'
import { isCalendarDay } from '../domain/calendar.ts'
import { ApiError } from '../domain/errors.ts'
import { components } from './openapi/resources.ts'

interface ParameterSchema {
  type: 'integer' | 'string' | 'array'
  /** The allowed values of an array parameter. Its text separates the values by commas. */
  items?: { enum: readonly string[] }
  enum?: readonly string[]
  format?: 'date'
  pattern?: string
  maxLength?: number
  examples?: readonly unknown[]
}

interface Parameter {
  name: string
  /** Completes the sentence "<name> must be …". */
  allowed: string
  /** Returns null when the text is not allowed. */
  read(text: string): Value | null
}

type Value = string | number | readonly string[]

/** Marks a parameter that was given twice, or as an array. */
const repeated = Symbol('repeated')
/** Marks a value that is not percent-encoded UTF-8. */
const garbled = Symbol('garbled')

/** A query string before a schema is applied. */
type RawQuery = Map<string, string | typeof repeated | typeof garbled | undefined>

const emptyQuery: RawQuery = new Map()

/** Used as Fastify's `querystringParser`, which must not throw. Only `compileParameters` reads the result. */
export function parseQuery(text: string): Record<string, unknown> {
  if (text === '') return emptyQuery as unknown as Record<string, unknown>
  const raw: RawQuery = new Map()
  for (const pair of text.split('&')) {
    const equals = pair.indexOf('=')
    const written = decode(equals === -1 ? pair : pair.slice(0, equals)) ?? ''
    const name = written.replace(/\[.*$/s, '')
    const value = equals === -1 ? '' : decode(pair.slice(equals + 1))
    raw.set(name, name !== written || raw.has(name) ? repeated : (value ?? garbled))
  }
  return raw as unknown as Record<string, unknown>
}

export function hasParameter(query: unknown, name: string): boolean {
  return (query as RawQuery).has(name)
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return null
  }
}

/** Used as Fastify's `setValidatorCompiler`. Compiles a schema into the function that reads its parameters. */
export const compileParameters: FastifySchemaCompiler<object> = ({ schema, httpPart }) => {
  // Schemas of headers only describe them. Each header is read where it is used, by the rules of its own RFC.
  if (httpPart === 'headers') return () => true
  const parameters = listParameters(schema)
  const read =
    httpPart === 'querystring'
      ? (input: unknown) => readQuery(parameters, input as RawQuery)
      : (input: unknown) => readPath(parameters, input as Record<string, string>)
  return input => {
    try {
      return { value: read(input) }
    } catch (error) {
      return { error: error as Error }
    }
  }
}

/** Reads texts that did not come over HTTP by the rules of a query string. Throws an `ApiError`. */
export function readTexts(
  schema: object,
  texts: Record<string, string | undefined>,
): Record<string, unknown> {
  return readQuery(listParameters(schema), new Map(Object.entries(texts)))
}

function listParameters({ properties = {} }: { properties?: Record<string, object> }): Parameter[] {
  return Object.entries(properties).map(([name, given]) => ({
    name,
    ...compileRead(resolveReference(given) as ParameterSchema),
  }))
}

/**
 * Returns the schema that a reference names, with the keywords beside the reference. The reference stands in `allOf`,
 * because the OpenAPI document would lose the keywords beside a bare `$ref`.
 */
export function resolveReference({ allOf, items, ...schema }: Referring): object {
  return { ...findComponent(allOf?.[0]), ...(items && { items: findComponent(items) }), ...schema }
}

interface Referring {
  allOf?: [{ $ref: string }]
  items?: { $ref: string }
}

function findComponent(reference: { $ref: string } | undefined): object {
  const { $id, ...found } = components.find(other => other.$id === reference?.$ref) ?? {}
  return found
}

function readQuery(parameters: readonly Parameter[], raw: RawQuery): Record<string, unknown> {
  const query: Record<string, unknown> = {}
  if (raw === emptyQuery) return query
  for (const parameter of parameters) {
    const { name } = parameter
    const text = raw.get(name)
    if (text === repeated) throw refuse(name, `${name} must be given once, as ${name}=value.`)
    if (text === garbled)
      throw refuse(name, `${name} must be percent-encoded UTF-8. Write a percent sign as %25.`)
    if (text !== undefined && text !== '') query[name] = readOne(parameter, text)
  }
  return query
}

function readPath(parameters: readonly Parameter[], input: Record<string, string>): Record<string, unknown> {
  const path: Record<string, unknown> = {}
  for (const parameter of parameters) path[parameter.name] = readOne(parameter, input[parameter.name] ?? '')
  return path
}

function readOne({ name, allowed, read }: Parameter, text: string): Value {
  const value = text.includes('\0') ? null : read(text)
  if (value === null) throw refuse(name, `${name} must be ${allowed}.`)
  return value
}

function refuse(param: string, message: string): ApiError {
  return new ApiError('invalid_parameter', message, { param })
}

function compileRead(schema: ParameterSchema): Pick<Parameter, 'allowed' | 'read'> {
  const { type, items, enum: values, format, pattern, maxLength, examples = [] } = schema
  const only = (isAllowed: (text: string) => boolean) => (text: string) => (isAllowed(text) ? text : null)
  if (type === 'integer') {
    const read = (text: string) => (/^-?\d+$/.test(text) ? Number(text) : null)
    return { allowed: 'a whole number, written in digits', read }
  }
  if (items !== undefined) return readSeveral(items.enum)
  if (values !== undefined)
    return { allowed: `one of ${values.join(', ')}`, read: only(text => values.includes(text)) }
  if (format === 'date') return { allowed: 'a calendar day, written YYYY-MM-DD', read: only(isCalendarDay) }
  if (pattern !== undefined) {
    const matches = new RegExp(pattern)
    const form = /^\d+$/.test(String(examples[0])) ? 'digits alone' : 'the prefix, then letters and digits'
    const allowed = `an ID like ${examples[0]}: ${form}`
    return { allowed, read: only(text => matches.test(text)) }
  }
  if (maxLength === undefined) return { allowed: 'text without NUL', read: text => text }
  // A text never has more characters than UTF-16 units, so most texts need no count.
  const read = only(text => text.length <= maxLength || [...text.trim()].length <= maxLength)
  return { allowed: `text of at most ${maxLength} characters, without NUL`, read }
}

/** Returns each value once, in the order of the schema. */
function readSeveral(values: readonly string[]): Pick<Parameter, 'allowed' | 'read'> {
  const read = (text: string) => {
    const given = text.split(',')
    return given.every(each => values.includes(each)) ? values.filter(value => given.includes(value)) : null
  }
  return { allowed: `one or more of ${values.join(', ')}, separated by commas`, read }
}
