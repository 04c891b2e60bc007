/**
 * The token of a customer link: a JWT that an operator's own key signed. Signing and verification both use this form.
 *
 *     header   { "alg": "EdDSA", "typ": "fatura-link+jwt", "kid": "key_…" }             and no other member
 *     payload  { "sub": "cus_…", "aud": PUBLIC_URL, "iat": seconds, "exp": seconds, "invoice"?: "in_…" }
 *
 * The key must be known and not revoked, must have signed the token, and must be allowed to sign for `sub`. `aud` is
 * exactly PUBLIC_URL, as one text. `iat` and `exp` are whole seconds. `iat` is not in the future. `exp` is in the
 * future, and at most 24 h after `iat`. Other claims are ignored. A clock may differ by a minute.
 */
import { randomText } from './token.ts'

export const linkType = 'fatura-link+jwt'
export const linkAlgorithm = 'EdDSA'
export const maxLinkSeconds = 24 * 60 * 60

const keyIdLength = 12
const keyIdForm = new RegExp(`^key_[0-9A-Za-z]{${keyIdLength}}$`)

export function createKeyId(): string {
  return `key_${randomText(keyIdLength)}`
}

export function isKeyId(value: unknown): value is string {
  return typeof value === 'string' && keyIdForm.test(value)
}
