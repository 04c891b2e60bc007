import { timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { ApiError } from '../../domain/errors.ts'
import { expired, type Grant, malformed, type Proof, TokenRefusal, type VerifyJwt } from './grant.ts'
import { createLookupGuard, networkOf } from './lookup-guard.ts'
import { hasJwtForm, parseJwt } from './parse-jwt.ts'
import { type CoversCustomer, cacheScopes } from './scopes.ts'
import { type Answer, keepMs, ShortCache } from './short-cache.ts'
import { hashToken, isToken, readTokenId } from './token.ts'

export interface TokenRecord {
  id: string
  hash: string
  every_customer: boolean
  expires_at: number | null
  revoked_at: number | null
}

/**
 * Returns a promise only when the store must be asked or a signature must be verified. `findAddress` is called only for
 * a token that was not verified yet.
 */
export type Authenticate = (
  authorization: string | undefined,
  findAddress?: () => string,
) => Grant | Promise<Grant>

export interface AuthenticateOptions {
  findToken(id: string): TokenRecord | null | Promise<TokenRecord | null>
  /** Asked only for a token that is not for every customer. By default, such a token is valid for no customer. */
  coversCustomer?: CoversCustomer
  /** Null when only Fatura's own tokens are accepted. */
  verifyJwt?: VerifyJwt | null
  now?(): number
}

/** The grant of a valid token. `expires_at` is in milliseconds since 1970. */
interface Proven {
  grant: Grant
  expires_at: number
}

interface Bearer {
  token: string
  hash: string
  address: string
}

/**
 * A longer token is remembered by its hash, which keeps the memory small. A space before the hash marks it, because
 * no token has a space.
 */
const maxKeyLength = 2_048

/** A verified JWT is kept by its hash for an hour. Its expiry is checked at each use. */
const keepVerified = { ttl: 60 * 60 * 1000, max: 20_000, ttlResolution: 0 }

const keepRefused = { ttl: 10_000, max: 10_000, ttlResolution: 0 }

/**
 * Throws or rejects with `missing_token`, `invalid_token`, `insufficient_scope` or `rate_limited`. A valid token is
 * remembered for half a second. After that time, the store is asked again, or the JWT's key is checked again. A JWT's
 * signature is verified once. The duration of a lookup in a Map reveals nothing of a secret, because V8 seeds its
 * hashes at random.
 */
export function createAuthenticate(options: AuthenticateOptions): Authenticate {
  const { findToken, coversCustomer = () => false, verifyJwt = null, now = Date.now } = options
  const covers = cacheScopes(coversCustomer)
  const proven = new ShortCache(prove)
  const verified = new LRUCache<string, Proof>(keepVerified)
  const refused = new LRUCache<string, TokenRefusal>(keepRefused)
  const guard = createLookupGuard()

  async function prove(_key: string, bearer: Bearer): Promise<Answer<Proven>> {
    const isJwt = verifyJwt !== null && hasJwtForm(bearer.token)
    try {
      const answer = await (isJwt ? proveJwt(bearer, verifyJwt) : proveToken(bearer))
      if (answer.value.expires_at > now()) guard.recordSuccess(bearer.hash)
      return answer
    } catch (error) {
      if (error instanceof TokenRefusal && error.isGuess) guard.recordFailure(bearer.address)
      throw error
    }
  }

  async function proveToken({ token, hash, address }: Bearer): Promise<Answer<Proven>> {
    const id = readTokenId(token)
    const { found, until } = await guard.withSlot(address, id, hash, async () => {
      const until = performance.now() + keepMs
      return { found: await findToken(id), until }
    })
    // Until the secret is verified, the answer does not reveal whether the token exists or was revoked.
    if (found === null || !timingSafeEqual(Buffer.from(hash), Buffer.from(found.hash)))
      throw new TokenRefusal('The access token is not known.', { isGuess: true })
    if (found.revoked_at !== null) throw new TokenRefusal('The access token was revoked.')
    const expires_at = found.expires_at ?? Number.POSITIVE_INFINITY
    return { value: { grant: createGrant(found, covers), expires_at }, until }
  }

  async function proveJwt(bearer: Bearer, verify: VerifyJwt): Promise<Answer<Proven>> {
    const refusal = refused.get(bearer.hash)
    if (refusal !== undefined) throw refusal
    const proof = verified.get(bearer.hash) ?? (await verifyOnce(bearer, verify))
    return { value: proof, until: await proof.confirm() }
  }

  async function verifyOnce({ token, hash, address }: Bearer, verify: VerifyJwt): Promise<Proof> {
    const jwt = parseJwt(token)
    if (jwt === null) throw new TokenRefusal(malformed)
    try {
      const kid = String(jwt.header.kid)
      const proof = await verify(jwt, check => guard.withSlot(address, kid, hash, check))
      verified.set(hash, proof)
      return proof
    } catch (error) {
      if (error instanceof TokenRefusal && error.lasts) refused.set(hash, error)
      throw error
    }
  }

  async function find(key: string, token: string, findAddress: () => string): Promise<Grant> {
    const bearer = { token, hash: hashToken(token), address: networkOf(findAddress()) }
    const { grant, expires_at } = (await proven.find(key, bearer)).value
    if (expires_at <= now()) throw new TokenRefusal(expired)
    return grant
  }

  return (authorization = '', findAddress = () => '') => {
    const token = readBearer(authorization)
    const key = token.length <= maxKeyLength ? token : ` ${hashToken(token)}`
    const known = proven.known(key)
    if (known !== undefined && known.value.expires_at > now()) return known.value.grant
    if (!isToken(token) && !(verifyJwt !== null && hasJwtForm(token))) throw new TokenRefusal(malformed)
    return find(key, token, findAddress)
  }
}

function createGrant({ id, every_customer }: TokenRecord, covers: CoversCustomer): Grant {
  return {
    token_id: id,
    invoice_id: null,
    every_customer,
    mayRead: customerId => every_customer || covers(id, customerId),
  }
}

/** The whole word `Bearer`: another character of a scheme's name may not follow (RFC 9110, section 5.6.2). */
const bearerScheme = /^bearer(?![\w!#$%&'*+.^`|~-])/i

/**
 * Returns the text after the scheme and its spaces. RFC 9110 allows no other white space here. Without a space, the
 * text begins with a character that no token has.
 */
function readBearer(authorization: string): string {
  const credentials = bearerScheme.test(authorization) ? authorization.slice('bearer'.length) : ''
  let [start, end] = [0, credentials.length]
  while (credentials[start] === ' ') start++
  while (start < end && credentials[end - 1] === ' ') end--
  if (start === end)
    throw new ApiError(
      'missing_token',
      'Send an access token in the header Authorization: Bearer <ACCESS_TOKEN>.',
    )
  return credentials.slice(start, end)
}
