/** Reads JSON objects, strictly: a text that two readers could understand in two ways is refused. */

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Null for what is no JSON, no object, or names a member twice. */
export function parseObject(json: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(json)
    return isObject(value) && !repeatsMember(json) ? value : null
  } catch {
    return null
  }
}

const tokens = /"(?:[^"\\]|\\.)*"(\s*:)?|[{}]/g

/** Whether an object anywhere in the JSON text of an object has two members of one name, however they are spelled. */
function repeatsMember(json: string): boolean {
  const open: Set<string>[] = []
  for (const [token, colon] of json.matchAll(tokens))
    if (token === '{') open.push(new Set())
    else if (token === '}') open.pop()
    else if (colon !== undefined) {
      const name: string = JSON.parse(token.slice(0, -colon.length))
      const names = open.at(-1) as Set<string>
      if (names.has(name)) return true
      names.add(name)
    }
  return false
}
