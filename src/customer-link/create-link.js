/**
 * Makes the links that let a customer in. Nothing is asked of the service, and nothing but WebCrypto is used, so it runs in
 * any backend of JavaScript. It is JavaScript because Node runs no TypeScript under node_modules; its types stand beside it.
 */

const maxTtlSeconds = 86_400
const usualTtlSeconds = 3_600

const customerForm = /^cus_[A-Za-z0-9_-]{1,251}$/
const invoiceForm = /^in_[A-Za-z0-9_-]{1,252}$/
/** 32 bytes. */
const halfForm = /^[A-Za-z0-9_-]{43}$/
const kidForm = /^key_[0-9A-Za-z]{12}$/

const loopback = /^(localhost|\[::1\]|127\.\d+\.\d+\.\d+)$/

/** @type {typeof import('./create-link.d.ts').createLink} */
export async function createLink(options) {
  const { token } = await createLinkToken(options)
  return `${readPublicUrl(options.publicUrl)}/#t=${token}`
}

/** @type {typeof import('./create-link.d.ts').createLinkToken} */
export async function createLinkToken({ key, publicUrl, customer, invoice, ttlSeconds = usualTtlSeconds }) {
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
  // JSON leaves out what is undefined.
  const claims = { sub: customer, invoice, aud, iat, exp }
  const signed = [header, claims].map(part => toBase64url(JSON.stringify(part))).join('.')
  const privateKey = await crypto.subtle.importKey('jwk', { kty, crv, x, d }, 'Ed25519', false, ['sign'])
  const signature = await crypto.subtle.sign('Ed25519', privateKey, new TextEncoder().encode(signed))
  const token = `${signed}.${toBase64url(String.fromCharCode(...new Uint8Array(signature)))}`
  return { token, expires_at: new Date(exp * 1_000).toISOString() }
}

/** @type {typeof import('./create-link.d.ts').readLinkKey} */
export function readLinkKey(key) {
  const given = typeof key === 'string' ? parseJson(key) : key
  const { kty, crv, kid, x, d } = /** @type {Record<string, unknown>} */ (given ?? {})
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

/** @type {typeof import('./create-link.d.ts').readPublicUrl} */
export function readPublicUrl(publicUrl) {
  const url = URL.canParse(publicUrl) ? new URL(publicUrl) : null
  if (url === null || !/^https?:$/.test(url.protocol) || url.href !== url.origin + url.pathname)
    throw new TypeError('publicUrl must be an address like https://invoices.example.com, without a query.')
  if (url.protocol === 'http:' && !loopback.test(url.hostname))
    throw new TypeError('publicUrl must begin with https; http is allowed for this machine alone.')
  return url.href.replace(/\/+$/, '')
}

/**
 * @param {unknown} value
 * @param {RegExp} form
 * @returns {value is string}
 */
function isText(value, form) {
  return typeof value === 'string' && form.test(value)
}

/** @param {string} text */
function parseJson(text) {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/**
 * Of characters below 256, each of which is a byte.
 * @param {string} bytes
 */
function toBase64url(bytes) {
  return btoa(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}
