import { crc32 } from 'node:zlib'

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** A text with the checksum of an access token behind it, whatever else is wrong with it. */
export function withChecksum(body: string): string {
  let [rest, text] = [crc32(body), '']
  for (let i = 0; i < 6; i++) {
    text = alphabet.charAt(rest % 62) + text
    rest = Math.floor(rest / 62)
  }
  return body + text
}
