/**
 * Access tokens: `fat_`, 12 characters that name the token, 30 that are its secret (178 random bits), and 6 of
 * checksum. The name may be shown and logged; of the whole only a SHA-256 is kept. The checksum reveals a typing error, and
 * a token in leaked text, without a query of the database.
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

/** Whether a text has a token's form and checksum; the token need not exist. */
export function isToken(text: string): boolean {
  return form.test(text) && text.endsWith(checksum(text.slice(0, -checksumLength)))
}

/** The part of a well-formed token that names it. */
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
