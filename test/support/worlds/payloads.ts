/** Payloads of an upstream in one JSON file: a complete one, and of each case the differences from it. */
import { readFileSync } from 'node:fs'

/** Fields by path, as in `invoice.total_taxes.0.amount`. */
interface Change {
  unset?: string[]
  set?: Record<string, unknown>
}

type Fields = Record<string, unknown>

interface PayloadFile {
  base: object
  /** A complete line, of which the lines of a case differ. */
  line?: object
  cases: Record<string, Change & { about: string; lines?: Change[] }>
}

/** All cases, by name; each is a new object. */
export function readPayloads<T>(file: URL): Map<string, T & { about: string }> {
  const { base, line = {}, cases }: PayloadFile = JSON.parse(readFileSync(file, 'utf8'))
  const complete = ([name, { about, lines, ...change }]: [string, PayloadFile['cases'][string]]) => {
    const payload = {
      ...apply(base, change),
      about,
      ...(lines && { lines: lines.map(each => apply(line, each)) }),
    }
    return [name, payload as T & { about: string }] as const
  }
  return new Map(Object.entries(cases).map(complete))
}

function apply(base: object, { unset = [], set = {} }: Change): object {
  const payload = structuredClone(base)
  const find = (path: string): [parent: Fields, name: string] => {
    const names = path.split('.')
    const last = names.pop() ?? ''
    return [names.reduce((at, name) => at[name] as Fields, payload as Fields), last]
  }
  for (const path of unset) {
    const [parent, name] = find(path)
    delete parent[name]
  }
  for (const [path, value] of Object.entries(set)) {
    const [parent, name] = find(path)
    parent[name] = structuredClone(value)
  }
  return payload
}
