/**
 * Access tokens: `fat_`, an id of 12 characters, a secret of 30 characters (178 random bits), and a checksum of 6
 * characters. The id may be shown and logged. Of the whole token, only a SHA-256 is stored. The checksum reveals
 * typing errors, and tokens in leaked text, without a database query.
 */
import { hash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'

const prefix = 'fat_'
const idLength = 12
const secretLength = 30
const checksumLength = 6
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const form = new RegExp(`^${prefix}[0-9A-Za-z]{${idLength + secretLength + checksumLength}}$`)

export function createToken() {
  const body = prefix + randomText(idLength + secretLength)
  const token = body + checksum(body)
  return { id: readTokenId(token), token, hash: hashToken(token) }
}

/** Whether a text has a token's form and checksum. The token need not exist. */
export function isToken(text: string): boolean {
  return form.test(text) && text.endsWith(checksum(text.slice(0, -checksumLength)))
}

export function readTokenId(token: string): string {
  return token.slice(0, prefix.length + idLength)
}

export function hashToken(token: string): string {
  return hash('sha256', token)
}

export function randomText(length: number): string {
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('')
}

function checksum(body: string): string {
  let rest = crc32(body)
  let text = ''
  for (let i = 0; i < checksumLength; i++) {
    text = alphabet.charAt(rest % alphabet.length) + text
    rest = Math.floor(rest / alphabet.length)
  }
  return text
}
