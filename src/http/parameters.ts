/**
 * Path and query parameters, read strictly by the schema of their route: a value that is not allowed is refused with a
 * sentence that names the allowed ones; nothing is guessed or dropped.
 */

import type { FastifySchemaCompiler } from 'fastify'
import type { TSchema } from 'typebox'
import { isCalendarDay } from '../calendar.ts'
import { ApiError } from '../errors.ts'
import { components } from './openapi/resources.ts'

/** The part of JSON Schema that parameters use. */
interface ParameterSchema {
  type: 'integer' | 'string'
  enum?: readonly string[]
  format?: 'date'
  pattern?: string
  maxLength?: number
  examples?: readonly unknown[]
}

/** A reference to a named schema; beside a bare `$ref`, the OpenAPI document would lose the other keywords. */
interface Reference {
  allOf: [{ $ref: string }]
}

type Read = (text: string) => string | number | null

interface Parameter {
  name: string
  /** Completes the sentence "<name> must be …". */
  allowed: string
  read: Read
}

/** A query string, before any schema. */
interface RawQuery {
  values: Map<string, string>
  /** Parameters given twice, or as an array. */
  repeated: Set<string>
  /** Parameters that are not percent-encoded UTF-8. */
  garbled: Set<string>
}

const emptyQuery: RawQuery = { values: new Map(), repeated: new Set(), garbled: new Set() }

/** For Fastify's `querystringParser`, which must not throw. The result is read by `compileParameters` alone. */
export function parseQuery(text: string): Record<string, unknown> {
  if (text === '') return emptyQuery as unknown as Record<string, unknown>
  const raw: RawQuery = { values: new Map(), repeated: new Set(), garbled: new Set() }
  for (const pair of text.split('&')) {
    const equals = pair.indexOf('=')
    const written = decode(equals === -1 ? pair : pair.slice(0, equals)) ?? ''
    const name = written.replace(/\[.*$/s, '')
    const value = equals === -1 ? '' : decode(pair.slice(equals + 1))
    if (name !== written || raw.values.has(name)) raw.repeated.add(name)
    if (value === null) raw.garbled.add(name)
    raw.values.set(name, value ?? '')
  }
  return raw as unknown as Record<string, unknown>
}

/** Whether a query string names a parameter at all. */
export function hasParameter(query: unknown, name: string): boolean {
  return (query as RawQuery).values.has(name)
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return null
  }
}

/** For Fastify's `setValidatorCompiler`: from a schema to the function that reads its parameters. */
export const compileParameters: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  // Header schemas describe; each header is read where it is used, by the rules of its own RFC.
  if (httpPart === 'headers') return () => true
  const properties = (schema as { properties?: Record<string, ParameterSchema | Reference> }).properties ?? {}
  const parameters = Object.entries(properties).map(([name, given]) => {
    const property = 'allOf' in given ? findNamed(given.allOf[0].$ref) : given
    return { name, allowed: describe(property), read: compileRead(property) }
  })
  return httpPart === 'querystring'
    ? input => attempt(readQuery, parameters, input as RawQuery)
    : input => attempt(readPath, parameters, input as Record<string, string>)
}

function findNamed(name: string): ParameterSchema {
  const named: readonly object[] = components
  return named.find(schema => '$id' in schema && schema.$id === name) as ParameterSchema
}

function attempt<Input>(
  read: (parameters: readonly Parameter[], input: Input) => Record<string, unknown>,
  parameters: readonly Parameter[],
  input: Input,
) {
  try {
    return { value: read(parameters, input) }
  } catch (error) {
    return { error: error as Error }
  }
}

function readQuery(parameters: readonly Parameter[], raw: RawQuery): Record<string, unknown> {
  const query: Record<string, unknown> = {}
  if (raw === emptyQuery) return query
  for (const parameter of parameters) {
    const { name } = parameter
    if (raw.repeated.has(name)) throw refuse(name, `${name} must be given once, as ${name}=value.`)
    if (raw.garbled.has(name))
      throw refuse(name, `${name} must be percent-encoded UTF-8; a literal percent sign is written %25.`)
    const text = raw.values.get(name)
    if (text !== undefined && text !== '') query[name] = readOne(parameter, text)
  }
  return query
}

function readPath(parameters: readonly Parameter[], input: Record<string, string>): Record<string, unknown> {
  const path: Record<string, unknown> = {}
  for (const parameter of parameters) path[parameter.name] = readOne(parameter, input[parameter.name] ?? '')
  return path
}

function readOne({ name, allowed, read }: Parameter, text: string): string | number {
  const value = text.includes('\0') ? null : read(text)
  if (value === null) throw refuse(name, `${name} must be ${allowed}.`)
  return value
}

function refuse(param: string, message: string): ApiError {
  return new ApiError('invalid_parameter', message, { param })
}

function describe({
  type,
  enum: values,
  format,
  pattern,
  maxLength,
  examples = [],
}: ParameterSchema): string {
  if (type === 'integer') return 'a whole number, written in digits'
  if (values !== undefined) return `one of ${values.join(', ')}`
  if (format === 'date') return 'a calendar day, written YYYY-MM-DD'
  if (pattern !== undefined) return `an ID like ${examples[0]}: the prefix, then letters and digits`
  return maxLength === undefined ? 'text without NUL' : `text of at most ${maxLength} characters, without NUL`
}

function compileRead({ type, enum: values, format, pattern, maxLength }: ParameterSchema): Read {
  if (type === 'integer') return text => (/^-?\d+$/.test(text) ? Number(text) : null)
  if (values !== undefined) return text => (values.includes(text) ? text : null)
  if (format === 'date') return text => (isCalendarDay(text) ? text : null)
  if (pattern !== undefined) {
    const form = new RegExp(pattern)
    return text => (form.test(text) ? text : null)
  }
  // Fewer UTF-16 units than the limit means fewer characters too, so most texts need no count.
  const limit = maxLength ?? Number.POSITIVE_INFINITY
  return text => (text.length <= limit || [...text.trim()].length <= limit ? text : null)
}
