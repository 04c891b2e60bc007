import type { TSchema } from 'typebox'
import { ApiError } from '../errors.ts'
import { compileParameters, parseQuery } from '../http/parameters.ts'

export interface Input {
  properties: Readonly<Record<string, TSchema>>
  required: readonly string[]
}

export type Arguments = Record<string, string | number>

/** Reads a tool's arguments as the API reads its parameters. Throws an `ApiError` that shows what is allowed. */
export function readArguments({ properties, required }: Input, given: object): Arguments {
  const refuse = (message: string) => new ApiError('invalid_parameter', message)
  const texts: [string, string][] = []
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(properties, name))
      throw refuse(`There is no such argument, only: ${Object.keys(properties).join(', ') || 'none'}.`)
    if (typeof value === 'string' || typeof value === 'number') texts.push([name, String(value)])
    else if (value !== null) throw refuse(`${name} must be text or a number.`)
  }
  const schema = { properties } as unknown as TSchema
  const read = compileParameters({ schema, httpPart: 'querystring', method: 'GET', url: '' })
  const result = read(parseQuery(new URLSearchParams(texts).toString()))
  const { value = {}, error } = result as { value?: Arguments; error?: Error }
  if (error !== undefined) throw error
  for (const name of required) if (value[name] === undefined) throw refuse(`${name} is required.`)
  return value
}
