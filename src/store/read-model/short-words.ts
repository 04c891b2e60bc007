/**
 * Words of up to four letters are found without reading texts. Of a day's invoices, each pair of letters has a line: for each
 * two letters that follow the pair somewhere, who has the four. A longer word can only be where its fours are.
 */
import { type Letters, letters, noLetter, setBit } from './letters.ts'
import type { SearchWord } from './search.ts'

/** Behind the parts of frequent words. */
const firstPart = 32
export const shortParts = 64

/** Which words are found so, as SQL writes it, too; and which only where their fours are. */
export const shortWords = `^[${letters}]{1,4}$`
const isShort = new RegExp(shortWords)
export const longerWords = `^[${letters}]{5,}$`
const isLonger = new RegExp(longerWords)

/**
 * How a line is written: its pair as letters between `\n` and `=`; the third letter as a byte from `third` on, once for all that
 * follows; the fourth as a byte from `fourth` on, and its list. What is none of our letters is the last of these bytes.
 * A list is a byte for each that is in it: how many texts it lies behind the last one, and `behind` more. A larger byte comes
 * before it where that is too far, and tells of one to sixteen times `far` texts.
 */
export const coding = { fourth: 0x10, third: 0x40, behind: 0x7f, far: 112, skip: 0xef } as const
const { fourth: fourthCode, third: thirdCode, behind, far, skip } = coding
const mostSkips = 0xff - skip
const [lineStart, lineMark] = [0x0a, 0x3d]

const letterCount = letters.length
/** Of what follows a pair: each letter, or none of ours. */
const nextCount = letterCount + 1
const otherNext = letterCount

function partOfPair(first: number, second: number): number {
  return firstPart + ((3 * first + 17 * second) % shortParts)
}

/** The same in SQL. */
export function shortPartInSql(word: string): string {
  return `${firstPart} + (3 * ascii(${word}) + 17 * ascii(substr(${word}, 2, 1))) % ${shortParts}`
}

export interface ShortPlace {
  part: number
  mark: string
  /** The third and the fourth letter, as they are written; null for a shorter word. */
  third: number | null
  fourth: number | null
}

function placeOf(word: string): ShortPlace {
  const [first = '', second = '', third, fourth] = word
  const codeOf = (letter: string | undefined, from: number) =>
    letter === undefined ? null : from + letters.indexOf(letter)
  return {
    part: partOfPair(first.charCodeAt(0), second.charCodeAt(0) || 0),
    mark: `\n${first}${second}=`,
    third: codeOf(third, thirdCode),
    fourth: codeOf(fourth, fourthCode),
  }
}

/** Where it is told who has a word; null for one that is longer, or has other letters. A single letter has no line: it is kept as if frequent. */
export function shortPlace([text, taxId]: SearchWord): ShortPlace | null {
  return taxId === null && text.length > 1 && isShort.test(text) ? placeOf(text) : null
}

/** The first and the last four letters of a longer word: who has it has these. Null where they tell nothing. */
export function foursOf([text, taxId]: SearchWord): [ShortPlace, ShortPlace] | null {
  return taxId === null && isLonger.test(text) ? [placeOf(text.slice(0, 4)), placeOf(text.slice(-4))] : null
}

/** Who has the word in the own text, by a part that holds its line if anything does. */
export function readShort(part: Uint8Array, place: ShortPlace, texts: number): Uint8Array {
  const bits = new Uint8Array(Math.ceil(texts / 8))
  const bytes = Buffer.from(part.buffer, part.byteOffset, part.byteLength)
  const line = bytes.indexOf(place.mark, 0, 'latin1')
  if (line === -1) return bits
  let at = line + place.mark.length
  const nextLine = bytes.indexOf(lineStart, at)
  const end = nextLine === -1 ? bytes.length : nextLine
  if (place.third !== null) {
    at = bytes.indexOf(place.third, at) + 1
    if (at === 0 || at > end) return bits
  }
  let isMeant = place.fourth === null
  for (let text = -1; at < end; at++) {
    const byte = bytes[at] as number
    if (byte > skip) text += (byte - skip) * far
    else if (byte > behind) {
      text += byte - behind
      if (isMeant) setBit(bits, text)
    } else if (byte >= thirdCode) {
      if (place.third !== null) break
    } else {
      text = -1
      isMeant = place.fourth === null || place.fourth === byte
    }
  }
  return bits
}

/** Where which four letters stand in a row, or fewer where others than ours follow. */
export interface Fours {
  /** The fours, in order, and the place of each. Where the same four follow each other, so do their places. */
  fours: Uint32Array
  places: Uint32Array
}

const noFour = 0xffffffff

/** The letters of four, as far as they are ours. */
export function nameFour(four: number): string {
  const numbers = [
    Math.floor(four / nextCount ** 2 / letterCount),
    Math.floor(four / nextCount ** 2) % letterCount,
    Math.floor(four / nextCount) % nextCount,
    four % nextCount,
  ]
  return numbers.map(number => letters[number] ?? '').join('')
}

/** How many fours share their first letters: that many follow each other. */
export const sharing = { 2: nextCount ** 2, 3: nextCount, 4: 1 } as const
const ofPair = sharing[2]

/** Whether so many letters of four are ours. */
export function isOfLetters(four: number, count: 2 | 3 | 4): boolean {
  return nameFour(four).length >= count
}

export function findFours({ at: letterAt, textAt }: Letters): Fours {
  const length = textAt.length
  const noPair = letterCount ** 2
  // Of each place, the pair that begins there, and the two letters that follow it.
  const [pairAt, nextAt] = [new Uint16Array(length), new Uint16Array(length)]
  // How many there are of each; then where those of each begin.
  const [ofPairs, ofNexts] = [new Uint32Array(noPair + 1), new Uint32Array(ofPair + 1)]
  let [first, second, third] = [noLetter, letterAt[0] as number, letterAt[1] as number]
  for (let place = 0; place < length; place++) {
    first = second
    second = third
    third = letterAt[place + 2] as number
    if (first === noLetter || second === noLetter) {
      pairAt[place] = noPair
      continue
    }
    let next = otherNext * nextCount + otherNext
    if (third !== noLetter) {
      const fourth = letterAt[place + 3] as number
      next = third * nextCount + (fourth === noLetter ? otherNext : fourth)
    }
    const pair = first * letterCount + second
    pairAt[place] = pair
    nextAt[place] = next
    ofPairs[pair + 1] = (ofPairs[pair + 1] as number) + 1
    ofNexts[next + 1] = (ofNexts[next + 1] as number) + 1
  }
  for (let pair = 1; pair <= noPair; pair++)
    ofPairs[pair] = (ofPairs[pair] as number) + (ofPairs[pair - 1] as number)
  for (let next = 1; next <= ofPair; next++)
    ofNexts[next] = (ofNexts[next] as number) + (ofNexts[next - 1] as number)
  const count = ofPairs[noPair] as number
  // Sorted by what follows the pair, then by the pair; the order of the places stays.
  const [byNext, places, fours] = [new Uint32Array(count), new Uint32Array(count), new Uint32Array(count)]
  for (let place = 0; place < length; place++) {
    if (pairAt[place] === noPair) continue
    const next = nextAt[place] as number
    const to = ofNexts[next] as number
    ofNexts[next] = to + 1
    byNext[to] = place
  }
  for (let i = 0; i < count; i++) {
    const place = byNext[i] as number
    const pair = pairAt[place] as number
    const to = ofPairs[pair] as number
    ofPairs[pair] = to + 1
    places[to] = place
    fours[to] = pair * ofPair + (nextAt[place] as number)
  }
  return { fours, places }
}

/** The lines, in their parts. Every part is there, also one without a line: that no line is found then tells something. */
export function keepShort({ fours, places }: Fours, { texts, textAt }: Letters): Buffer[] {
  const skipsAtMost = Math.ceil(texts / far / mostSkips) + 1
  const written = Buffer.allocUnsafe(fours.length * (3 + skipsAtMost) + 4 * letterCount ** 2)
  const lines: Buffer[][] = Array.from({ length: shortParts }, () => [])
  let at = 0
  for (let i = 0; i < fours.length; ) {
    const start = at
    const pair = Math.floor((fours[i] as number) / ofPair)
    const [first, second] = [letters.charCodeAt(pair / letterCount), letters.charCodeAt(pair % letterCount)]
    written[at++] = lineStart
    written[at++] = first
    written[at++] = second
    written[at++] = lineMark
    let [lastFour, lastThird, lastText] = [noFour, -1, -1]
    for (const end = (pair + 1) * ofPair; i < fours.length; i++) {
      const four = fours[i] as number
      if (four >= end) break
      const text = textAt[places[i] as number] as number
      if (four !== lastFour) {
        const next = four - pair * ofPair
        const third = (next / nextCount) | 0
        if (third !== lastThird) written[at++] = thirdCode + third
        written[at++] = fourthCode + next - third * nextCount
        lastThird = third
        lastFour = four
        lastText = -1
      } else if (text === lastText) continue
      let ahead = text - lastText
      while (ahead > far) {
        const skips = Math.min(mostSkips, Math.floor((ahead - 1) / far))
        written[at++] = skip + skips
        ahead -= skips * far
      }
      written[at++] = behind + ahead
      lastText = text
    }
    lines[partOfPair(first, second) - firstPart]?.push(written.subarray(start, at))
  }
  return lines.map(some => Buffer.concat(some))
}
