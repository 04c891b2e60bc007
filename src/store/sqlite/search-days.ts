/**
 * A day's texts in one row. Row by row, the engine spends more on reaching a row than on looking into its text; a large
 * customer's invoices are therefore also kept by the day, and a search looks through those.
 */
import { ixOf } from '../read-model/counting.ts'
import { type DayTexts, hasBit } from '../read-model/letters.ts'
import { formsOf, type SearchWord, textEnd } from '../read-model/search.ts'

export interface SearchRow {
  status: string
  ix_status: string | null
  own_text: string
  /** The text of whom it is made out to. */
  party: string
}

/** A day's invoices, in the list's order. */
export interface SearchDay {
  states: string
  /** Of each invoice three numbers, in the machine's order: where its text ends, its state, its party. */
  marks: Uint8Array
  parties: string
  /** The invoices' own texts. */
  texts: string
}

export const dayColumns = 'states, marks, parties, texts'

type State = [status: string, ix_status: string | null]

export function makeDay(rows: readonly SearchRow[]): SearchDay {
  const n = rows.length
  const marks = new Uint32Array(3 * n)
  const states = new Numbering()
  const parties = new Numbering()
  let end = -textEnd.length
  for (const [i, { status, ix_status, own_text, party }] of rows.entries()) {
    end += textEnd.length + own_text.length
    marks[i] = end
    marks[n + i] = states.numberOf(`${status} ${ixOf(ix_status)}`, i)
    marks[2 * n + i] = parties.numberOf(party, i)
  }
  const stateRows = states.firsts.map(i => rows[i] as SearchRow)
  return {
    states: JSON.stringify(stateRows.map(({ status, ix_status }): State => [status, ix_status])),
    marks: new Uint8Array(marks.buffer),
    parties: parties.firsts.map(i => rows[i]?.party).join(textEnd),
    texts: rows.map(({ own_text }) => own_text).join(textEnd),
  }
}

/** How many invoices it has. */
export function sizeOf({ marks }: SearchDay): number {
  return marks.length / 12
}

/** What its invoices are found by. */
export function textsOf({ marks, texts, parties }: SearchDay): DayTexts {
  const numbers = numbersOf(marks)
  return {
    texts: texts.split(textEnd),
    parties: parties.split(textEnd),
    partyOf: numbers.subarray((numbers.length / 3) * 2),
  }
}

/** Whether two differ in states alone, if in anything. */
export function hasSameTexts(one: SearchDay, other: SearchDay): boolean {
  const partiesOf = ({ marks }: SearchDay) => marks.subarray((marks.length / 3) * 2)
  return (
    one.texts === other.texts &&
    one.parties === other.parties &&
    Buffer.compare(partiesOf(one), partiesOf(other)) === 0
  )
}

/** Numbers what is met from 0 on, and keeps where each was met first. */
class Numbering {
  readonly firsts: number[] = []
  private readonly numbers = new Map<string, number>()

  numberOf(name: string, place: number): number {
    const known = this.numbers.get(name)
    if (known !== undefined) return known
    this.numbers.set(name, this.firsts.length)
    return this.firsts.push(place) - 1
  }
}

/** All ends, then all states, then all parties. */
function numbersOf(marks: Uint8Array): Uint32Array {
  return new Uint32Array(marks.buffer, marks.byteOffset, marks.byteLength / 4)
}

/** A word, and what of it is looked for first: `probe`, which stands `lead` letters within it. */
export interface SoughtWord {
  word: string
  /** What a party's text may hold for it. */
  forms: readonly string[]
  probe: string
  lead: number
}

// A few letters are looked for by their first one, and many by leaps: both are fast. What lies between is not.
const [fewLetters, manyLetters] = [6, 16]

/** The first letter should be rare: texts are full of digits, and of 0, 1 and 2 from years and padded numbers above all. */
export function soughtWord(sought: SearchWord): SoughtWord {
  const [[word], forms] = [sought, formsOf(sought)]
  const lead = [/\D/, /[3-9]/].map(rare => word.search(rare)).find(place => place !== -1)
  if (lead === undefined || word.length >= manyLetters) return { word, forms, probe: word, lead: 0 }
  return { word, forms, probe: word.slice(lead, lead + fewLetters), lead }
}

/** Where the word is from a place on; the texts' end when it is nowhere. */
function findWord(texts: string, { word, probe, lead }: SoughtWord, from: number): number {
  for (let at = texts.indexOf(probe, from + lead); at !== -1; at = texts.indexOf(probe, at + 1))
    if (probe.length === word.length || texts.startsWith(word, at - lead)) return at - lead
  return texts.length
}

export interface Sought {
  /** Every invoice's text holds each, or its party's does. */
  words: readonly SoughtWord[]
  status: string | undefined
  ix_status: string | undefined
}

/**
 * Of each invoice of a day 1 when it is sought, else 0, in `found`, which is long enough; says how many are. Those without a
 * bit among `possible` are none of them: the last invoice's bit is the first.
 */
export function findTexts(
  day: SearchDay,
  sought: Sought,
  found: Uint8Array,
  possible: Uint8Array | null = null,
): number {
  const wanted: Wanted[] = []
  for (const word of sought.words) {
    const holders = findHolders(day.parties, word.forms)
    const place = holders === null && possible === null ? findWord(day.texts, word, 0) : -1
    if (place === day.texts.length) return 0
    if (!holders?.every(Boolean)) wanted.push({ word, holders, place })
  }
  // The later a word's first place is, the rarer it is, and the fewer texts are left for the next word.
  const rarity = ({ holders, place }: Wanted) => (holders === null ? place : day.texts.length / 8)
  wanted.sort((a, b) => rarity(b) - rarity(a))
  const marks = numbersOf(day.marks)
  const n = marks.length / 3
  if (possible === null) found.fill(1, 0, n)
  else for (let i = 0; i < n; i++) found[i] = hasBit(possible, n - 1 - i) ? 1 : 0
  dropOtherStates(found, day, marks, sought)
  let left = countOnes(found, n)
  for (const one of wanted) {
    if (left > n / 2) dropUpTo(found, day.texts, marks, one)
    else dropOneByOne(found, day.texts, marks, one)
    left = countOnes(found, n)
  }
  return left
}

interface Wanted {
  word: SoughtWord
  /** Which parties hold it; null when none does. */
  holders: readonly boolean[] | null
  /** Its first place in the texts, or -1 if that was not looked for. */
  place: number
}

function countOnes(found: Uint8Array, n: number): number {
  let ones = 0
  for (let i = 0; i < n; i++) ones += found[i] as number
  return ones
}

/** Which parties hold any of the texts; null when none does. */
function findHolders(parties: string, texts: readonly string[]): boolean[] | null {
  if (!texts.some(text => parties.includes(text))) return null
  return parties.split(textEnd).map(party => texts.some(text => party.includes(text)))
}

function dropOtherStates(
  found: Uint8Array,
  { states }: SearchDay,
  marks: Uint32Array,
  { status, ix_status }: Sought,
): void {
  if (status === undefined && ix_status === undefined) return
  const isMeant = (JSON.parse(states) as State[]).map(
    state =>
      (status === undefined || state[0] === status) && (ix_status === undefined || state[1] === ix_status),
  )
  const n = marks.length / 3
  for (let i = 0; i < n; i++) if (!isMeant[marks[n + i] as number]) found[i] = 0
}

/** For many texts: the word's next place is kept, and all that end before it are without. */
function dropUpTo(found: Uint8Array, texts: string, marks: Uint32Array, wanted: Wanted): void {
  const { word, holders } = wanted
  const n = marks.length / 3
  let [start, place] = [0, wanted.place]
  for (let i = 0; i < n; i++) {
    const end = marks[i] as number
    if (found[i] === 1 && (holders === null || !holders[marks[2 * n + i] as number])) {
      if (place < start) place = findWord(texts, word, start)
      if (place >= end) found[i] = 0
    }
    start = end + textEnd.length
  }
}

/** For few texts: what lies between them is not looked through. */
function dropOneByOne(found: Uint8Array, texts: string, marks: Uint32Array, wanted: Wanted): void {
  const { word, holders } = wanted
  const n = marks.length / 3
  for (let i = 0; i < n; i++) {
    if (found[i] === 0 || holders?.[marks[2 * n + i] as number]) continue
    const start = i === 0 ? 0 : (marks[i - 1] as number) + textEnd.length
    if (!texts.slice(start, marks[i]).includes(word.word)) found[i] = 0
  }
}
