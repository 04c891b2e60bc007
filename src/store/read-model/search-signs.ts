/**
 * What a word can be in, told without reading texts. The sign of a text is a set of bits: each group of five letters in it
 * sets one. Where a group of a word has no bit, the word is not. Signs are kept cut into parts, by the group's hash, so that
 * to look for a group in a thousand texts is to read one short part of each.
 */
import { keepFrequent } from './frequent-words.ts'
import { type DayTexts, readLetters } from './letters.ts'
import { keepParties, partyPart } from './party-bits.ts'
import { type SearchWord, textEnd } from './search.ts'
import { findFours, keepShort } from './short-words.ts'

export const signParts = 32

const groupLength = 5
const [factor, factorOfFirst] = [0x01000193, power(0x01000193, groupLength)]

function power(base: number, exponent: number): number {
  return exponent === 0 ? 1 : Math.imul(power(base, exponent - 1), base)
}

/** Spreads the hash over all bits: the highest are the part, the lowest the place within. */
function spread(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  mixed = Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39)
  return mixed ^ (mixed >>> 15)
}

/** Calls back for each group of letters, in order, with its hash. */
function eachGroup(text: string, found: (group: number) => void): void {
  let hash = 0
  for (let i = 0; i < text.length; i++) {
    hash = (Math.imul(hash, factor) + text.charCodeAt(i)) | 0
    if (i >= groupLength) hash = (hash - Math.imul(factorOfFirst, text.charCodeAt(i - groupLength))) | 0
    if (i >= groupLength - 1) found(spread(hash))
  }
}

/** A group's bit: in which part, in which of its bytes (modulo how many there are), and which of that byte: its lowest three bits say. */
export function partOf(group: number): number {
  return group >>> 27
}

export function byteOf(group: number): number {
  return (group >>> 3) & 0xffffff
}

/** So many bits there are for a letter of a text: few enough for a day's parts to lie within pages of SQLite. */
const bitsALetter = 7

/** The parts of a text's sign, each of as many bytes. */
export function signText(text: string): Uint8Array[] {
  const size = Math.max(8, Math.ceil((text.length * bitsALetter) / 8 / signParts))
  const bits = new Uint8Array(size * signParts)
  eachGroup(text, group => {
    const byte = partOf(group) * size + (byteOf(group) % size)
    bits[byte] = (bits[byte] as number) | (1 << (group & 7))
  })
  return Array.from({ length: signParts }, (_, part) => bits.subarray(part * size, (part + 1) * size))
}

/** A day of fewer invoices is read faster than its signs, and has none. */
export const leastSigned = 64

/** A day of fewer invoices keeps no words: all such texts are read in a few milliseconds. */
const leastKept = 256

/** What is kept of a day to look for words in it: the parts of its sign, and of its words, those of frequent ones first and its parties last. */
export interface DayParts<Part> {
  signs: Part
  words: Part
}

/** How many parts of one kind a day has at most. */
export const mostParts = partyPart + 1

/** How many parts a day of so many invoices has. */
export function countParts(invoices: number): DayParts<number> {
  return {
    signs: invoices < leastSigned ? 0 : signParts,
    words: invoices < leastKept ? 0 : mostParts,
  }
}

/** Whether days of two sizes have the same parts. */
export function hasSameParts(one: number, other: number): boolean {
  return (
    countParts(one).signs === countParts(other).signs && countParts(one).words === countParts(other).words
  )
}

/**
 * So many days of a customer may be without signs, though large enough: their texts are read. Of days that change again and again,
 * one after the other as a history is read, or the same one as invoices are written, each is then signed once.
 */
const unsignedAtMost = 8

/** Of the days without signs, those to be signed now: rather such as did not just change. */
export function chooseToSign(unsigned: readonly number[], changed: ReadonlySet<number>): number[] {
  const [stay, go] = [unsigned.filter(day => changed.has(day)), unsigned.filter(day => !changed.has(day))]
  return [...go, ...stay].slice(0, Math.max(0, unsigned.length - unsignedAtMost))
}

export function signDay(day: DayTexts): DayParts<Uint8Array[]> {
  const { texts, parties } = day
  if (texts.length < leastSigned) return { signs: [], words: [] }
  const signs = signText([...texts, ...parties].join(textEnd))
  if (texts.length < leastKept) return { signs, words: [] }
  const run = readLetters(texts)
  const fours = findFours(run)
  return { signs, words: [...keepFrequent(day, run, fours), ...keepShort(fours, run), keepParties(day)] }
}

/** This many groups tell enough: further ones would only be read. */
export const groupsAtMost = 12

/** What is held whichever form of a word is: of a tax id with a country before it, all but the country. */
function sharedPart([text, taxId]: SearchWord): string {
  const rest = (taxId ?? text).trimStart()
  return text.endsWith(rest) ? rest : ''
}

/** The groups that a text holds if it holds the words. The last ones first: numbers differ at their ends. */
export function groupsOf(words: readonly SearchWord[]): number[] {
  const groups: number[] = []
  for (const word of words) {
    const own: number[] = []
    eachGroup(sharedPart(word), group => own.push(group))
    groups.push(...own.reverse())
  }
  return groups.slice(0, groupsAtMost)
}
