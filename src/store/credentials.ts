/** Tokens, and keys that sign customer links, as a store holds them. */

export interface StoredToken {
  id: string
  name: string
  /** SHA-256 of the token, in hexadecimal: the token itself is nowhere. */
  hash: string
  /** The customers it is valid for; null means all. */
  customers: readonly string[] | null
  created_at: number
  expires_at: number | null
  revoked_at: number | null
}

/** A key that signs customer links. Whoever made it has the private half; the store has the public one. */
export interface StoredKey {
  kid: string
  name: string
  /** The public Ed25519 key, as the member `x` of a JWK: 32 bytes in base64url. */
  x: string
  /** The customers whose links it may sign; null means all. */
  customers: readonly string[] | null
  created_at: number
  revoked_at: number | null
}

/** A token or a key as the API reads it. Its customers may be many: they are asked for one by one. */
interface Scoped {
  every_customer: boolean
}
export type TokenAccess = Pick<StoredToken, 'id' | 'hash' | 'expires_at' | 'revoked_at'> & Scoped
export type KeyAccess = Pick<StoredKey, 'kid' | 'x' | 'revoked_at'> & Scoped
