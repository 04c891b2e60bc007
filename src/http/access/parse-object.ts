/** Reads JSON objects strictly. A text that two readers could understand differently is refused. */

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Null when the text is no JSON, no object, or repeats a member. */
export function parseObject(json: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(json)
    return isObject(value) && !repeatsMember(json) ? value : null
  } catch {
    return null
  }
}

const tokens = /"(?:[^"\\]|\\.)*"(\s*:)?|[{}]/g

/**
 * Whether any object in the JSON text has two members of the same name, also when their spelling differs by escapes.
 */
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
