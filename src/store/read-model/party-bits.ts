/**
 * Names are found without reading texts: of a day's invoices, bits tell which are made out to whom. Whoever is sought by a
 * word that a party holds is found with all that are the party's.
 */
import { frequentParts } from './frequent-words.ts'
import { type DayTexts, setBit, writeBits } from './letters.ts'
import { partyIdOf } from './search.ts'
import { shortParts } from './short-words.ts'

/** Behind the parts of words. */
export const partyPart = frequentParts + shortParts

/** A day of more parties keeps none of them: most of its invoices would have one of their own. */
const partiesAtMost = 24

const markOf = (partyId: number | string) => `\n${partyId}:`

/** The parties with their bits; nothing where there are too many. */
export function keepParties({ texts, parties, partyOf }: DayTexts): Buffer {
  if (parties.length > partiesAtMost) return Buffer.alloc(0)
  const bits = parties.map(() => Buffer.alloc(Math.ceil(texts.length / 8)))
  for (let i = 0; i < texts.length; i++) {
    const ofParty = bits[partyOf[i] as number]
    // Of a damaged store, a party may be missing: that is for doctor to tell.
    if (ofParty !== undefined) setBit(ofParty, texts.length - 1 - i)
  }
  const lines = parties.map((party, i) => markOf(partyIdOf(party)) + writeBits(bits[i] as Buffer))
  return Buffer.from(lines.join(''))
}

/** Adds the bits of all who are made out to some parties, by a day's part. */
export function addParties(bits: Uint8Array, part: Uint8Array, partyIds: Iterable<string>): void {
  const bytes = Buffer.from(part.buffer, part.byteOffset, part.byteLength)
  for (const id of partyIds) {
    const mark = markOf(id)
    const found = bytes.indexOf(mark)
    if (found === -1) continue
    const start = found + mark.length
    const end = bytes.indexOf('\n', start)
    const theirs = Buffer.from(bytes.toString('latin1', start, end === -1 ? bytes.length : end), 'hex')
    for (let i = 0; i < theirs.length; i++) bits[i] = (bits[i] as number) | (theirs[i] as number)
  }
}
