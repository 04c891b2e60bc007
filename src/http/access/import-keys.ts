/** Imports the keys of a JSON Web Key Set that may verify a signature. */
import { type CryptoKey, calculateJwkThumbprint, importJWK, type JWK } from 'jose'
import { isObject } from './parse-object.ts'

export interface VerificationKey {
  /** RFC 7638: two keys of one thumbprint are one key. */
  thumbprint: string
  kid: string | undefined
  /** The only algorithm it is used with (RFC 8725, section 3.1). */
  alg: string
  key: CryptoKey
}

/** Asymmetric ones alone: nobody can sign with what the provider publishes. */
const algorithms: ReadonlySet<unknown> = new Set(
  'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' '),
)

export function isAlgorithm(alg: unknown): alg is string {
  return algorithms.has(alg)
}

const minRsaBits = 2_048
const maxKeys = 100

/** The usable keys of a set. Throws when there is none: what was known before then stays. */
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

/** Null, or a rejection, for a key that is not for this, and for what is none. */
async function importKey(jwk: Readonly<Record<string, unknown>>): Promise<VerificationKey | null> {
  // An RSA key that names no algorithm could have several; providers that leave it out mean this one.
  const usual = jwk.kty === 'RSA' ? 'RS256' : defaultAlgorithms[String(jwk.crv)]
  const { kid, use, key_ops, alg = usual } = jwk
  if (use !== undefined && use !== 'sig') return null
  if (key_ops !== undefined && !(Array.isArray(key_ops) && key_ops.includes('verify'))) return null
  if ((kid !== undefined && typeof kid !== 'string') || !isAlgorithm(alg)) return null
  const { kty, crv, x, y, n, e } = jwk as JWK
  // The public members alone: whatever else is published is not taken in.
  const key = (await importJWK({ kty, crv, x, y, n, e } as JWK, alg)) as CryptoKey
  const { modulusLength = minRsaBits } = key.algorithm as { modulusLength?: number }
  if (modulusLength < minRsaBits) return null
  return { thumbprint: await calculateJwkThumbprint({ kty, crv, x, y, n, e } as JWK), kid, alg, key }
}

/** The algorithm of a key that names none, by its curve. */
const defaultAlgorithms: Record<string, string> = {
  'P-256': 'ES256',
  'P-384': 'ES384',
  'P-521': 'ES512',
  Ed25519: 'EdDSA',
}
