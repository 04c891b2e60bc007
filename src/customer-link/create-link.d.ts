/** The private half of a key, as `fatura key add` prints it: an Ed25519 JWK (RFC 8037) with the id of the key. */
export interface LinkKey {
  kty: 'OKP'
  crv: 'Ed25519'
  kid: string
  /** The public half, in base64url. */
  x: string
  /** The private half, in base64url. */
  d: string
}

export interface LinkOptions {
  /** What `fatura key add` printed: the text, or the object that it holds. */
  key: string | LinkKey
  /** The service's PUBLIC_URL, such as `https://invoices.example.com`. */
  publicUrl: string
  /** Whose invoices the link shows, `cus_…`. */
  customer: string
  /** Shows this invoice of the customer and no other, `in_…`. */
  invoice?: string | undefined
  /** For how long it works: 1 to 86400 seconds, 3600 unless told. */
  ttlSeconds?: number | undefined
}

export interface LinkToken {
  /** To be sent as `Authorization: Bearer <token>`. */
  token: string
  /** When it stops working: ISO 8601, UTC, with milliseconds. */
  expires_at: string
}

/** A link for a customer's browser: `PUBLIC_URL/#t=…`. Rejects with a TypeError that says what is wrong with the options. */
export function createLink(options: LinkOptions): Promise<string>

/** What the link carries, for an app of your own that calls the API. Rejects as `createLink` does. */
export function createLinkToken(options: LinkOptions): Promise<LinkToken>

/** Throws a TypeError, which never repeats the key, unless it is a private JWK as `fatura key add` prints it. */
export function readLinkKey(key: unknown): LinkKey

/** The address in the one form that links name it by: without a slash at its end. Throws a TypeError. */
export function readPublicUrl(publicUrl: string): string
