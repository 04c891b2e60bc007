/**
 * What a word can be in, told without reading texts. The sign of a text is a set of bits: each group of five letters in it
 * sets one. Where a group of a word has no bit, the word is not. Signs are kept cut into parts, by the group's hash, so that
 * to look for a group in a thousand texts is to read one short part of each.
 */
import { frequentParts, keepFrequent, type TextBlock } from './frequent-words.ts'
import { type SearchWord, textEnd } from './search.ts'

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

export function partOf(group: number): number {
  return group >>> 27
}

/** The parts of a text's sign, each of as many bytes: a power of two, so that there are 4 to 8 bits for a letter. */
export function signText(text: string): Uint8Array[] {
  const size = 2 ** Math.max(3, Math.ceil(Math.log2(text.length / 2 / signParts)))
  const mask = size * 8 - 1
  const bits = new Uint8Array(size * signParts)
  eachGroup(text, group => {
    const place = group & mask
    const byte = partOf(group) * size + (place >>> 3)
    bits[byte] = (bits[byte] as number) | (1 << (place & 7))
  })
  return Array.from({ length: signParts }, (_, part) => bits.subarray(part * size, (part + 1) * size))
}

/** The parts of a block's sign follow each other from 0 on; those of its frequent words come next. */
export const everyPart = Array.from({ length: signParts + frequentParts }, (_, part) => part)

/** All that is kept of a block to look for words in it, in parts. */
export function signBlock(block: TextBlock): [part: number, bits: Uint8Array][] {
  const sign = signText([...block.texts, ...block.parties].join(textEnd))
  const frequent = [...keepFrequent(block)].map(([part, words]) => [part, Buffer.from(words)] as const)
  return [...sign.entries(), ...frequent].map(([part, bits]) => [part, bits])
}

/** This many groups tell enough: further ones would only be read. */
const groupsAtMost = 12

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
