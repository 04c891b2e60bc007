/** Creates links that sign a customer in. Uses WebCrypto alone, so it runs in any JavaScript backend. */

/** A private Ed25519 key as `fatura key add` prints it: a JWK (RFC 8037) with the id of the key. */
export interface LinkKey {
  kty: 'OKP'
  crv: 'Ed25519'
  kid: string
  /** The public key, in base64url. */
  x: string
  /** The private key, in base64url. */
  d: string
}

export interface LinkOptions {
  /** The output of `fatura key add`, as text or as the parsed object. */
  key: string | LinkKey
  /** The service's PUBLIC_URL, for example `https://invoices.example.com`. */
  publicUrl: string
  /** Id of the customer whose invoices the link shows, `cus_…`. */
  customer: string
  /** Id of the only invoice that the link shows, `in_…`. Default: all invoices of the customer. */
  invoice?: string | undefined
  /** Lifetime of the link, 1 to 86400 seconds. Default: 3600. */
  ttlSeconds?: number | undefined
}

export interface LinkToken {
  /** Sent as `Authorization: Bearer <token>`. */
  token: string
  /** Expiry as ISO 8601 in UTC with milliseconds. */
  expires_at: string
}

const maxTtlSeconds = 86_400
const defaultTtlSeconds = 3_600

const customerForm = /^cus_[A-Za-z0-9_-]{1,251}$/
const invoiceForm = /^in_[A-Za-z0-9_-]{1,252}$/
/** 43 characters of base64url hold 32 bytes. */
const halfForm = /^[A-Za-z0-9_-]{43}$/
const kidForm = /^key_[0-9A-Za-z]{12}$/

const loopback = /^(localhost|\[::1\]|127\.\d+\.\d+\.\d+)$/

/** Returns a link for a customer's browser: `PUBLIC_URL/#t=…`. Rejects with a TypeError that names the wrong option. */
export async function createLink(options: LinkOptions): Promise<string> {
  const { token } = await createLinkToken(options)
  return `${readPublicUrl(options.publicUrl)}/#t=${token}`
}

/** Returns the token of a link, for an app of your own that calls the API. Rejects like `createLink`. */
export async function createLinkToken(options: LinkOptions): Promise<LinkToken> {
  const { key, publicUrl, customer, invoice, ttlSeconds = defaultTtlSeconds } = options
  const { kid, kty, crv, x, d } = readLinkKey(key)
  const aud = readPublicUrl(publicUrl)
  if (!customerForm.test(customer)) throw new TypeError('customer must be an ID that begins with cus_.')
  if (invoice !== undefined && !invoiceForm.test(invoice))
    throw new TypeError('invoice must be an ID that begins with in_.')
  if (!Number.isInteger(ttlSeconds) || ttlSeconds < 1 || ttlSeconds > maxTtlSeconds)
    throw new TypeError(`ttlSeconds must be a whole number from 1 to ${maxTtlSeconds}.`)

  const iat = Math.floor(Date.now() / 1_000)
  const exp = iat + ttlSeconds
  const header = { alg: 'EdDSA', typ: 'fatura-link+jwt', kid }
  // `JSON.stringify` leaves out undefined fields.
  const claims = { sub: customer, invoice, aud, iat, exp }
  const signed = [header, claims].map(part => toBase64url(JSON.stringify(part))).join('.')
  const privateKey = await crypto.subtle.importKey('jwk', { kty, crv, x, d }, 'Ed25519', false, ['sign'])
  const signature = await crypto.subtle.sign('Ed25519', privateKey, new TextEncoder().encode(signed))
  const token = `${signed}.${toBase64url(String.fromCharCode(...new Uint8Array(signature)))}`
  return { token, expires_at: new Date(exp * 1_000).toISOString() }
}

/**
 * Throws a TypeError unless the key is a private JWK as `fatura key add` prints it. The error never repeats the key.
 */
export function readLinkKey(key: unknown): LinkKey {
  const given = typeof key === 'string' ? parseJson(key) : key
  const { kty, crv, kid, x, d } = (given ?? {}) as Record<string, unknown>
  if (
    kty !== 'OKP' ||
    crv !== 'Ed25519' ||
    !isText(kid, kidForm) ||
    !isText(x, halfForm) ||
    !isText(d, halfForm)
  )
    throw new TypeError(
      'The key must be the private JWK that "fatura key add" printed: JSON with kty, crv, kid, x and d.',
    )
  return { kty, crv, kid, x, d }
}

/** Returns the address without a slash at its end, as links name it. Throws a TypeError for an invalid address. */
export function readPublicUrl(publicUrl: string): string {
  const url = URL.canParse(publicUrl) ? new URL(publicUrl) : null
  if (url === null || !/^https?:$/.test(url.protocol) || url.href.replace(/\/+$/, '') !== url.origin)
    throw new TypeError(
      'publicUrl must be an address like https://invoices.example.com, without a path or a query.',
    )
  if (url.protocol === 'http:' && !loopback.test(url.hostname))
    throw new TypeError('publicUrl must begin with https; http is allowed for this machine alone.')
  return url.origin
}

function isText(value: unknown, form: RegExp): value is string {
  return typeof value === 'string' && form.test(value)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Each character of `bytes` is below 256 and stands for one byte. */
function toBase64url(bytes: string): string {
  return btoa(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}
