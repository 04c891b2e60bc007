/** Finds the calls of the log in the sources: level, message and names of the fields of each. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface LogCall {
  /** The message as it is in the code. A value within it is `…`; a message that a variable holds is the variable's name. */
  message: string
  level: string
  /** Names that the code writes out. */
  fields: string[]
}

const root = join(import.meta.dirname, '..')

/** Every call of a `log` outside the page, whose scripts run in a browser. */
export function findLogCalls(): LogCall[] {
  const files = globSync('src/**/*.ts', { cwd: root }).filter(file => !file.startsWith('src/web/'))
  return files.sort().flatMap(file => callsIn(readFileSync(join(root, file), 'utf8')))
}

export function callsIn(code: string): LogCall[] {
  return [...code.matchAll(/\blog\??\.(debug|info|warn|error|fatal)\(/g)].map(match => {
    const [first = '', second] = splitAtCommas(code.slice(match.index + match[0].length))
    const [message, fields] = second === undefined ? [first, ''] : [second, first]
    return { message: wordsOf(message), level: match[1] ?? '', fields: namesIn(fields) }
  })
}

/** The texts between the commas of a list, up to the bracket that closes it. */
function splitAtCommas(code: string): string[] {
  const parts: string[] = []
  let depth = 0
  let begin = 0
  for (const { 0: sign, index } of code.matchAll(
    /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`|[()[\]{},]/g,
  )) {
    if ('([{'.includes(sign)) depth++
    else if (')]}'.includes(sign)) depth--
    if (!(depth === 0 && sign === ',') && depth >= 0) continue
    parts.push(code.slice(begin, index).trim())
    begin = index + 1
    if (depth < 0) break
  }
  return parts.filter(part => part !== '')
}

function wordsOf(expression: string): string {
  const isText = /^(['"`])(.*)\1$/s.exec(expression)
  return isText?.[2] === undefined ? expression : isText[2].replace(/\$\{[^}]*\}/g, '…')
}

/** The names of an object's members. Members that another object brings are not known here. */
function namesIn(expression: string): string[] {
  if (!expression.startsWith('{')) return []
  return splitAtCommas(expression.slice(1)).flatMap(member => /^\w+/.exec(member)?.[0] ?? [])
}
