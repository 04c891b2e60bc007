/**
 * A day's texts in one. Row by row, the engine spends more on reaching a row than on looking into its text; a large
 * customer's invoices are therefore also kept as texts of a day each, and a search counts what it finds there.
 */
import type { Value } from './list-statement.ts'

export interface SearchRow {
  status: string
  ix_status: string | null
  party_id: number
  own_text: string
}

/** Invoices of a day that differ only in their own text: how many, and how long their texts are together. */
type Kind = [status: string, ix_status: string | null, party_id: number, n: number, length: number]

// Folding leaves no control characters, and within a text fields end otherwise.
const textEnd = '\r'

interface DayTexts {
  kinds: string
  texts: string
}

/** Kind by kind, so that a filter passes over whole stretches of the texts. */
export function groupTexts(rows: readonly SearchRow[]): DayTexts {
  const groups = new Map<string, { row: SearchRow; texts: string[] }>()
  for (const row of rows) {
    const name = JSON.stringify([row.status, row.ix_status, row.party_id])
    const group = groups.get(name)
    if (group === undefined) groups.set(name, { row, texts: [row.own_text] })
    else group.texts.push(row.own_text)
  }
  const kinds: Kind[] = []
  const texts: string[] = []
  // In an order of their own, so that the same invoices always make the same texts.
  for (const name of [...groups.keys()].sort()) {
    const group = groups.get(name) as { row: SearchRow; texts: string[] }
    const { status, ix_status, party_id } = group.row
    const text = group.texts.sort().join(textEnd)
    kinds.push([status, ix_status, party_id, group.texts.length, text.length])
    texts.push(text)
  }
  return { kinds: JSON.stringify(kinds), texts: texts.join(textEnd) }
}

/** What is looked for: for each party the words that are left, and which states. */
export interface Sought {
  left: ReadonlyMap<number, readonly string[]>
  status: Value | undefined
  ix_status: Value | undefined
}

/** Whether the parties all leave the same words, and every state counts: then kinds do not matter. */
export function wordsForAll({ left, status, ix_status }: Sought): readonly string[] | null {
  if (status !== undefined || ix_status !== undefined) return null
  const [first, ...others] = left.values()
  if (first === undefined) return null
  return others.every(words => words.join('\n') === first.join('\n')) ? first : null
}

/** A word that every party leaves: a text without it holds nothing that is sought. */
export function wordNeeded({ left }: Sought): string | undefined {
  const [first, ...others] = left.values()
  return first?.find(word => others.every(words => words.includes(word)))
}

export function isSought(row: SearchRow, { left, status, ix_status }: Sought): boolean {
  if (status !== undefined && row.status !== status) return false
  if (ix_status !== undefined && row.ix_status !== ix_status) return false
  return left.get(row.party_id)?.every(word => row.own_text.includes(word)) ?? false
}

/** How many invoices of a day are sought, of whatever kind. */
export function countKinds(day: { kinds: string; texts: string }, sought: Sought): number {
  let [found, at] = [0, 0]
  for (const [status, ix_status, party_id, n, length] of JSON.parse(day.kinds) as Kind[]) {
    const words = sought.left.get(party_id)
    const isMeant =
      (sought.status === undefined || status === sought.status) &&
      (sought.ix_status === undefined || ix_status === sought.ix_status)
    if (isMeant && words !== undefined)
      found += words.length === 0 ? n : countTexts(day.texts.slice(at, at + length), words)
    at += length + textEnd.length
  }
  return found
}

/** How many of the texts hold every word. There is at least one word. */
export function countTexts(texts: string, words: readonly string[]): number {
  const [word = ''] = words
  if (words.length > 1) return countJointly(texts, words)
  let found = 0
  for (let at = texts.indexOf(word); at !== -1; at = texts.indexOf(word, at)) {
    found++
    at = texts.indexOf(textEnd, at)
    if (at === -1) break
  }
  return found
}

/** Each word's next place is kept; whichever is furthest says in which text the others have to be. */
function countJointly(texts: string, words: readonly string[]): number {
  const places = words.map(() => -1)
  let [found, start] = [0, 0]
  for (;;) {
    let furthest = start
    for (const [i, word] of words.entries()) {
      let place = places[i] as number
      if (place < start) {
        place = texts.indexOf(word, start)
        if (place === -1) return found
        places[i] = place
      }
      if (place > furthest) furthest = place
    }
    const first = texts.lastIndexOf(textEnd, furthest) + 1
    if (first > start) {
      start = first
      continue
    }
    found++
    const end = texts.indexOf(textEnd, furthest)
    if (end === -1) return found
    start = end + 1
  }
}
