import { type CryptoKey, calculateJwkThumbprint, importJWK, type JWK } from 'jose'
import { isObject } from './parse-object.ts'

export interface VerificationKey {
  /** RFC 7638. Two keys with the same thumbprint are the same key. */
  thumbprint: string
  kid: string | undefined
  /** The only algorithm that the key is used with (RFC 8725, section 3.1). */
  alg: string
  key: CryptoKey
}

/**
 * Only asymmetric algorithms are accepted. With a symmetric one, anybody could sign with a key that the provider
 * publishes.
 */
const algorithms: ReadonlySet<unknown> = new Set(
  'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' '),
)

export function isAlgorithm(alg: unknown): alg is string {
  return algorithms.has(alg)
}

const minRsaBits = 2_048
const maxKeys = 100

/** Returns the usable keys of a set. Throws when there is none, so that the keys known before stay valid. */
export async function importKeys(json: string): Promise<VerificationKey[]> {
  const set: unknown = JSON.parse(json)
  if (!isObject(set) || !Array.isArray(set.keys)) throw new Error('it is not a JSON Web Key Set')
  const keys: VerificationKey[] = []
  for (const jwk of set.keys.slice(0, maxKeys)) {
    const key = await importKey(jwk).catch(() => null)
    if (key !== null) keys.push(key)
  }
  if (keys.length === 0) throw new Error('it holds no key that can verify a signature')
  return keys
}

/** Returns null, or rejects, when the JWK is no key that may verify signatures. */
async function importKey(jwk: Readonly<Record<string, unknown>>): Promise<VerificationKey | null> {
  // An RSA key without `alg` could have several algorithms. Providers that leave out `alg` mean RS256.
  const defaultAlgorithm = jwk.kty === 'RSA' ? 'RS256' : defaultAlgorithms[String(jwk.crv)]
  const { kid, use, key_ops, alg = defaultAlgorithm } = jwk
  if (use !== undefined && use !== 'sig') return null
  if (key_ops !== undefined && !(Array.isArray(key_ops) && key_ops.includes('verify'))) return null
  if ((kid !== undefined && typeof kid !== 'string') || !isAlgorithm(alg)) return null
  const { kty, crv, x, y, n, e } = jwk as JWK
  // Only the public members are imported.
  const key = (await importJWK({ kty, crv, x, y, n, e } as JWK, alg)) as CryptoKey
  const { modulusLength = minRsaBits } = key.algorithm as { modulusLength?: number }
  if (modulusLength < minRsaBits) return null
  return { thumbprint: await calculateJwkThumbprint({ kty, crv, x, y, n, e } as JWK), kid, alg, key }
}

/** The algorithm of a key without `alg`, by its curve. */
const defaultAlgorithms: Record<string, string> = {
  'P-256': 'ES256',
  'P-384': 'ES384',
  'P-521': 'ES512',
  Ed25519: 'EdDSA',
}
