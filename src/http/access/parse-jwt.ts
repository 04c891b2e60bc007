/**
 * Reads a JWT, strictly: three parts of canonical base64url (RFC 7515, section 2), the first two of them UTF-8 JSON objects
 * that name no member twice. A text that two readers could understand in two ways is refused before its signature is checked.
 */
import { isUtf8 } from 'node:buffer'
import { parseObject } from './parse-object.ts'

export interface Jwt {
  text: string
  header: Readonly<Record<string, unknown>>
  payload: Readonly<Record<string, unknown>>
}

/** In characters. A longer text is refused before anything else is done with it. */
const maxJwtLength = 8_192

const form = /^[\w-]+\.[\w-]+\.[\w-]+$/

/** Whether a text looks like a JWT: length and alphabet alone. */
export function hasJwtForm(text: string): boolean {
  return text.length <= maxJwtLength && form.test(text)
}

/** Null when a text of that form is no JWT all the same. */
export function parseJwt(text: string): Jwt | null {
  const parts = text.split('.')
  if (!parts.every(isCanonical)) return null
  const [header, payload] = parts.slice(0, 2).map(readObject)
  return header && payload ? { text, header, payload } : null
}

/** Whether no bits are left over behind the last byte, and no single character is. */
function isCanonical(part: string): boolean {
  return Buffer.from(part, 'base64url').toString('base64url') === part
}

function readObject(part: string): Record<string, unknown> | null {
  const bytes = Buffer.from(part, 'base64url')
  return isUtf8(bytes) ? parseObject(bytes.toString()) : null
}
