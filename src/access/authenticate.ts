/** Authenticates an Authorization header. */
import { timingSafeEqual } from 'node:crypto'
import { ApiError } from '../errors.ts'
import { expired, type Grant, malformed, type Proof, TokenRefusal, type VerifyJwt } from './grant.ts'
import { createLookupGuard, networkOf } from './lookup-guard.ts'
import { hasJwtForm, parseJwt } from './parse-jwt.ts'
import { createRecentMap } from './recent-map.ts'
import { type CoversCustomer, cacheScopes } from './scopes.ts'
import { type Cached, createShortCache, isRecent, keepMs, maxRemembered, shareCalls } from './short-cache.ts'
import { hashToken, isToken, readTokenId } from './token.ts'

/** A stored token. */
export interface TokenRecord {
  id: string
  hash: string
  every_customer: boolean
  expires_at: number | null
  revoked_at: number | null
}

/** A promise only when something has to be asked or verified. `findAddress` is called only for a token that has yet to prove right. */
export type Authenticate = (
  authorization: string | undefined,
  findAddress?: () => string,
) => Grant | Promise<Grant>

export interface AuthenticateOptions {
  findToken(id: string): TokenRecord | null | Promise<TokenRecord | null>
  /** Unless given, a token that is not for every customer is for nobody. */
  coversCustomer?: CoversCustomer
  /** Null: tokens of Fatura's own are the only ones. */
  verifyJwt?: VerifyJwt | null
  now?(): number
}

/** The grant of a header, and the time of its next check. Times are in milliseconds since 1970. */
interface Proven {
  grant: Grant
  expires_at: number
  until: number
}

/** Longer headers are hashed at each request: what is remembered must stay small. */
const maxProvenLength = 2_048

/** A verified JWT is kept by its hash for this long, unless it expires before. */
const keepVerified = { keepMs: 60 * 60 * 1000, maxEntries: 20_000 }

/** A JWT that will never be right is kept for this long. */
const keepRefused = { keepMs: 10_000, maxEntries: 10_000 }

/**
 * Throws, or rejects with, `missing_token`, `invalid_token`, `insufficient_scope` or `rate_limited`. The store's answer for a
 * token, also that there is none, is cached for half a second, and so is a header that proved right: hashing is then done twice
 * a second, not for every request. A JWT's signature is verified once; its key is checked again every half second. A lookup in a
 * Map compares hashes that V8 seeds at random, so its time reveals nothing of the secrets in it.
 */
export function createAuthenticate(options: AuthenticateOptions): Authenticate {
  const { findToken, coversCustomer = () => false, verifyJwt = null, now = Date.now } = options
  const tokens = createShortCache(findToken, now)
  const covers = cacheScopes(coversCustomer, now)
  const proven = createRecentMap<Proven>({ keepMs, maxEntries: maxRemembered })
  const verified = createRecentMap<Proof>(keepVerified)
  const refused = createRecentMap<TokenRefusal>(keepRefused)
  const shareLookup = shareCalls<Cached<TokenRecord>>()
  const shareVerification = shareCalls<Proof>()
  const guard = createLookupGuard()

  async function proveToken(token: string, hash: string, address: string): Promise<Proven> {
    const id = readTokenId(token)
    // Keyed by the whole token: its bearer never waits with those who guess at its secret.
    const { found, until } =
      tokens.recent(id) ??
      (await shareLookup(hash, () => guard.inTurn(address, id, hash, () => tokens.find(id))))
    // Nothing more of a token is revealed until its secret proved right.
    if (found === null || !timingSafeEqual(Buffer.from(hash), Buffer.from(found.hash)))
      throw new TokenRefusal('The access token is not known.', { isGuess: true })
    if (found.revoked_at !== null) throw new TokenRefusal('The access token was revoked.')
    return {
      grant: createGrant(found, covers),
      expires_at: found.expires_at ?? Number.POSITIVE_INFINITY,
      until,
    }
  }

  async function proveJwt(token: string, hash: string, address: string, verify: VerifyJwt): Promise<Proven> {
    const refusal = refused.get(hash)
    if (refusal !== undefined) throw refusal
    const { grant, expires_at, confirm } =
      verified.get(hash) ?? (await shareVerification(hash, () => verifyOnce(token, hash, address, verify)))
    return { grant, expires_at, until: await confirm() }
  }

  async function verifyOnce(token: string, hash: string, address: string, verify: VerifyJwt): Promise<Proof> {
    const jwt = parseJwt(token)
    if (jwt === null) throw new TokenRefusal(malformed)
    try {
      const kid = String(jwt.header.kid)
      const proof = await verify(jwt, check => guard.inTurn(address, kid, hash, check))
      verified.set(hash, proof, performance.now())
      return proof
    } catch (error) {
      if (error instanceof TokenRefusal && error.lasts) refused.set(hash, error, performance.now())
      throw error
    }
  }

  async function prove(authorization: string, findAddress: () => string): Promise<Grant> {
    const token = readBearer(authorization)
    const isJwt = verifyJwt !== null && hasJwtForm(token)
    if (!isJwt && !isToken(token)) throw new TokenRefusal(malformed)
    const address = networkOf(findAddress())
    const hash = hashToken(token)
    const proving = isJwt ? proveJwt(token, hash, address, verifyJwt) : proveToken(token, hash, address)
    const entry = await proving.catch(error => {
      if (error instanceof TokenRefusal && error.isGuess) guard.noteFailure(address)
      throw error
    })
    const time = now()
    if (entry.expires_at <= time) throw new TokenRefusal(expired)
    guard.noteWorked(hash)
    // Written with more than one space, a header could be of any length.
    if (authorization.length === 'Bearer '.length + token.length && token.length <= maxProvenLength)
      proven.set(authorization, entry, time)
    return entry.grant
  }

  return (authorization = '', findAddress = () => '') => {
    const entry = proven.get(authorization)
    if (entry === undefined) return prove(authorization, findAddress)
    const time = now()
    return isRecent(entry, time) && entry.expires_at > time ? entry.grant : prove(authorization, findAddress)
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

/** The scheme as a whole: what may be part of a scheme's name (RFC 9110, section 5.6.2) does not follow it. */
const bearerScheme = /^bearer(?![\w!#$%&'*+.^`|~-])/i

/**
 * The text behind the scheme and one or more spaces. Only spaces: no other character is white space here (RFC 9110). Without
 * one, it begins with a character that no token has.
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
