import type { TSchema } from 'typebox'
import { ApiError } from '../errors.ts'
import { readTexts } from '../http/parameters.ts'

export interface Input {
  properties: Readonly<Record<string, TSchema>>
  required: readonly string[]
}

export type Arguments = Record<string, string | number>

/** Reads a tool's arguments as the API reads its parameters. Throws an `ApiError` that shows what is allowed. */
export function readArguments({ properties, required }: Input, given: object): Arguments {
  const refuse = (message: string) => new ApiError('invalid_parameter', message)
  const texts: Record<string, string> = {}
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(properties, name))
      throw refuse(`There is no such argument, only: ${Object.keys(properties).join(', ') || 'none'}.`)
    if (typeof value === 'string' || typeof value === 'number') texts[name] = String(value)
    else if (value !== null) throw refuse(`${name} must be text or a number.`)
  }
  const value = readTexts({ properties }, texts) as Arguments
  for (const name of required) if (value[name] === undefined) throw refuse(`${name} is required.`)
  return value
}
