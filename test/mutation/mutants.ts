/**
 * Makes mutants of a source file: copies with one small mistake each, such as `<=` for `<`, a dropped default, or a column that an UPDATE
 * forgets. Pure functions.
 */
import { parse } from '@babel/parser'

export interface Mutant {
  /** Offsets of the replaced text. */
  start: number
  end: number
  text: string
}

export function findMutants(file: string, source: string): Mutant[] {
  const found = file.endsWith('.sql') ? findInSql(source, 0) : findInTypeScript(source)
  const byPlace = new Map(found.map(mutant => [`${mutant.start} ${mutant.end} ${mutant.text}`, mutant]))
  return [...byPlace.values()].sort((a, b) => a.start - b.start || a.end - b.end)
}

export function applyMutant(source: string, { start, end, text }: Mutant): string {
  return source.slice(0, start) + text + source.slice(end)
}

// TypeScript.

interface Node {
  type: string
  start: number
  end: number
  [field: string]: unknown
}

const swappedOperators = new Map([
  ['<', '<='],
  ['<=', '<'],
  ['>', '>='],
  ['>=', '>'],
  ['===', '!=='],
  ['!==', '==='],
  ['-', '+'],
  ['*', '/'],
  ['&&', '||'],
  ['||', '&&'],
])

/** Methods whose call is dropped, so that the list stays as it was. */
const droppedMethods = new Set(['filter', 'toSorted', 'sort', 'slice', 'toReversed'])
const swappedMethods = new Map([
  ['some', 'every'],
  ['every', 'some'],
  ['max', 'min'],
  ['min', 'max'],
])
/** Calls whose loss nobody is to notice: what they write is for people. */
const unimportantCall = /^(await )?(this\.)?(options\.)?(log|process\.stderr|process\.stdout)\b/

function findInTypeScript(source: string): Mutant[] {
  const found: Mutant[] = []
  const { program } = parse(source, { sourceType: 'module', plugins: ['typescript', 'jsx'] })
  visit(program as unknown as Node, node => found.push(...mutateNode(node, source)))
  return found
}

/** Types are left out: they never run. */
function visit(node: Node, look: (node: Node) => void): void {
  if (/^TS(Type|Interface)/.test(node.type) || node.type === 'ImportDeclaration') return
  look(node)
  for (const value of Object.values(node))
    for (const child of Array.isArray(value) ? value : [value])
      if (typeof child?.type === 'string' && typeof child.start === 'number') visit(child as Node, look)
}

function mutateNode(node: Node, source: string): Mutant[] {
  const child = (name: string) => node[name] as Node
  const textOf = ({ start, end }: Node) => source.slice(start, end)
  const whole = (text: string): Mutant => ({ start: node.start, end: node.end, text })
  switch (node.type) {
    case 'BinaryExpression':
    case 'LogicalExpression': {
      const operator = String(node.operator)
      if (operator === '??') return [whole(textOf(child('left')))]
      const swapped = swappedOperators.get(operator)
      if (swapped === undefined) return []
      const start = source.indexOf(operator, child('left').end)
      return [{ start, end: start + operator.length, text: swapped }]
    }
    case 'UnaryExpression':
      return node.operator === '!' ? [whole(textOf(child('argument')))] : []
    case 'BooleanLiteral':
      return [whole(String(!node.value))]
    case 'ConditionalExpression':
      return [
        whole(`${textOf(child('test'))} ? ${textOf(child('alternate'))} : ${textOf(child('consequent'))}`),
      ]
    case 'IfStatement':
      return ['true', 'false'].map(text => ({ ...child('test'), text }))
    case 'ExpressionStatement':
      return isCall(child('expression')) && !unimportantCall.test(textOf(node)) ? [whole('void 0')] : []
    case 'CallExpression':
      return mutateCall(node, source)
    case 'TemplateElement':
      return looksLikeSql(textOf(node)) ? findInSql(textOf(node), node.start) : []
    case 'StringLiteral':
      return looksLikeSql(textOf(node)) ? findInSql(textOf(node).slice(1, -1), node.start + 1) : []
    default:
      return []
  }
}

function isCall({ type, argument }: Node): boolean {
  return (
    type === 'CallExpression' || (type === 'AwaitExpression' && (argument as Node).type === 'CallExpression')
  )
}

function mutateCall(node: Node, source: string): Mutant[] {
  const callee = node.callee as Node
  if (callee.type !== 'MemberExpression') return []
  const property = callee.property as Node
  const object = callee.object as Node
  const name = source.slice(property.start, property.end)
  if (droppedMethods.has(name))
    return [{ start: node.start, end: node.end, text: source.slice(object.start, object.end) }]
  if (name === 'has') return [{ start: node.start, end: node.start, text: '!' }]
  const swapped = swappedMethods.get(name)
  return swapped === undefined ? [] : [{ start: property.start, end: property.end, text: swapped }]
}

// SQL.

function looksLikeSql(text: string): boolean {
  return /\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|ON CONFLICT|WHERE|ORDER BY)\b/.test(text)
}

/** What is replaced, and by what. The first group, if there is one, stays before it. */
const sqlRules: readonly (readonly [find: RegExp, text: string])[] = [
  [/(?<![<>!=:-])<(?![<>=])/g, '<='],
  [/(?<![<>])<=/g, '<'],
  [/(?<![<>=-])>(?![>=])/g, '>='],
  [/>=/g, '>'],
  [/<>/g, '='],
  [/(?<=\b(?:WHERE|AND|OR|ON|WHEN)\b(?:(?!\bSET\b)[^,;=<>])*[^<>!:=\s]\s)=(?=\s)/g, '<>'],
  [/\bAND\b/g, 'OR'],
  [/\bOR\b(?! REPLACE)/g, 'AND'],
  [/\bNOT (?=EXISTS|IN|LIKE|\w+\.)/g, ''],
  [/(?<!NOT )\bEXISTS(?= ?\()/g, 'NOT EXISTS'],
  [/\bIS NULL\b/g, 'IS NOT NULL'],
  [/\bIS NOT NULL\b/g, 'IS NULL'],
  [/ DESC\b/g, ''],
  [/\bmax\(/g, 'min('],
  [/\bmin\(/g, 'max('],
  [/\bgreatest\(/g, 'least('],
  [/\bleast\(/g, 'greatest('],
  [/\bDISTINCT /g, ''],
  [/\bLEFT JOIN\b/g, 'JOIN'],
  [/\bFULL JOIN\b/g, 'LEFT JOIN'],
  [/(?<=\w) \+ 1\b/g, ''],
  [/(?<=\w) - 1\b/g, ''],
]

function findInSql(sql: string, offset: number): Mutant[] {
  const read = blankComments(sql)
  const at = (start: number, end: number, text: string): Mutant => ({
    start: offset + start,
    end: offset + end,
    text,
  })
  const replaced = sqlRules.flatMap(([find, text]) =>
    [...read.matchAll(find)].map(({ index, 0: { length } }) => at(index, index + length, text)),
  )
  return [...replaced, ...dropDefaults(read, at), ...dropAssignments(read, at)]
}

/** Comments and the texts in quotes are no code. Their places stay. */
function blankComments(sql: string): string {
  return sql.replaceAll(/--[^\n]*|\/\*[\s\S]*?\*\/|'[^'\n]*'/g, text => ' '.repeat(text.length))
}

type At = (start: number, end: number, text: string) => Mutant

/** `coalesce(a, b)` becomes `a`. */
function dropDefaults(sql: string, at: At): Mutant[] {
  return [...sql.matchAll(/\bcoalesce\(/gi)].flatMap(({ index, 0: { length } }) => {
    const begin = index + length
    const parts = splitAtCommas(sql, begin)
    const [first] = parts
    const end = parts.at(-1)?.end
    if (first === undefined || end === undefined || parts.length < 2) return []
    return [at(first.end, end, '')]
  })
}

/** Each column of an UPDATE that sets several. */
function dropAssignments(sql: string, at: At): Mutant[] {
  const lists = sql.matchAll(/\b(?:UPDATE\s+\S+(?:\s+AS\s+\w+)?|DO\s+UPDATE)\s+SET\s+(?=\w+ = )/g)
  return [...lists].flatMap(({ index, 0: { length } }) => {
    const parts = splitAtCommas(sql, index + length)
    if (parts.length < 2) return []
    return parts.map(({ start, end }, place) => {
      const next = parts[place + 1]
      return next === undefined ? at((parts[place - 1] as Part).end, end, '') : at(start, next.start, '')
    })
  })
}

interface Part {
  start: number
  end: number
}

/** Splits at the commas of the same depth, up to the closing parenthesis or the next clause. */
function splitAtCommas(sql: string, begin: number): Part[] {
  const parts: Part[] = []
  let depth = 0
  let start = begin
  for (let place = begin; place <= sql.length; place++) {
    const letter = sql[place]
    const isOver =
      letter === undefined ||
      letter === ';' ||
      (depth === 0 && (letter === ')' || /^\s(WHERE|RETURNING|FROM)\b/.test(sql.slice(place, place + 12))))
    if (isOver || (depth === 0 && letter === ',')) {
      const text = sql.slice(start, place)
      const lead = text.length - text.trimStart().length
      parts.push({ start: start + lead, end: start + text.trimEnd().length })
      start = place + 1
      if (isOver) break
    } else if (letter === '(') depth++
    else if (letter === ')') depth--
  }
  return parts
}
