/**
 * Reads a JWT strictly: three parts of canonical base64url (RFC 7515, section 2). The first two parts are UTF-8 JSON
 * objects without repeated members. A text that two readers could understand differently is refused before its
 * signature is checked.
 */
import { isUtf8 } from 'node:buffer'
import { parseObject } from './parse-object.ts'

export interface Jwt {
  text: string
  header: Readonly<Record<string, unknown>>
  payload: Readonly<Record<string, unknown>>
}

/** Maximum length in characters. A longer text is refused before anything else happens. */
const maxJwtLength = 8_192

const form = /^[\w-]+\.[\w-]+\.[\w-]+$/

/** Whether a text looks like a JWT, by its length and alphabet alone. */
export function hasJwtForm(text: string): boolean {
  return text.length <= maxJwtLength && form.test(text)
}

/** Returns null when the text is no JWT, although it may look like one. */
export function parseJwt(text: string): Jwt | null {
  const parts = text.split('.')
  if (!parts.every(isCanonical)) return null
  const [header, payload] = parts.slice(0, 2).map(readObject)
  return header && payload ? { text, header, payload } : null
}

/** Whether a part of a JWT is canonical base64url: its bytes, encoded again, give the same text. */
function isCanonical(part: string): boolean {
  return Buffer.from(part, 'base64url').toString('base64url') === part
}

function readObject(part: string): Record<string, unknown> | null {
  const bytes = Buffer.from(part, 'base64url')
  return isUtf8(bytes) ? parseObject(bytes.toString()) : null
}
