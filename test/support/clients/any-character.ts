import fc from 'fast-check'

const firstSurrogate = 0xd800
const surrogates = 0x800

/**
 * Every character of Unicode: what fast-check calls `binary`, drawn in the same way. To find the place of one, fast-check
 * fills a table of a million first, which takes a second; here it is counted.
 */
export const anyCharacter = fc.nat(0x10ffff - surrogates).map(
  place => String.fromCodePoint(place < firstSurrogate ? place : place + surrogates),
  written => {
    const [character, ...more] = String(written)
    const code = character?.codePointAt(0)
    if (typeof written !== 'string' || code === undefined || more.length > 0) throw new Error('no character')
    if (code < firstSurrogate) return code
    if (code < firstSurrogate + surrogates) throw new Error('half a character')
    return code - surrogates
  },
)
