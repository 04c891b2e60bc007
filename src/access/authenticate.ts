/** From an Authorization header to what its bearer may read. */
import { timingSafeEqual } from 'node:crypto'
import { ApiError } from '../errors.ts'
import { hashToken, isToken, readTokenId } from './token.ts'

/** What a stored token says of its bearer. */
export interface TokenRecord {
  id: string
  hash: string
  customers: readonly string[] | null
  expires_at: number | null
  revoked_at: number | null
}

export interface Grant {
  token_id: string
  mayRead(customerId: string): boolean
}

/** A promise only when the store has to be asked. */
export type Authenticate = (authorization: string | undefined) => Grant | Promise<Grant>

/** A revocation must be seen within a second; half of one leaves room for the request itself. */
const rememberFor = 500
const rememberAtMost = 10_000

interface Remembered {
  hash: Buffer
  grant: Grant
  expires_at: number
  revoked: boolean
  until: number
}

/**
 * Throws, or rejects with, `missing_token` or `invalid_token`. What the store says of a token is remembered for half a
 * second, and so is which header proved right: hashing is then done twice a second, not for every request. A lookup in
 * a Map compares hashes that V8 seeds at random, so its time tells nothing of the secrets that it holds.
 */
export function createAuthenticate(
  findToken: (id: string) => TokenRecord | null | Promise<TokenRecord | null>,
  now: () => number = Date.now,
): Authenticate {
  const remembered = new Map<string, Remembered>()
  const proven = new Map<string, Remembered>()
  let provenUntil = 0

  async function recall(id: string): Promise<Remembered | null> {
    const known = remembered.get(id)
    const asked = now()
    if (known !== undefined && isRecent(known, asked)) return known
    const record = await findToken(id)
    if (record === null) return null
    const entry = {
      hash: Buffer.from(record.hash),
      grant: createGrant(record),
      expires_at: record.expires_at ?? Number.POSITIVE_INFINITY,
      revoked: record.revoked_at !== null,
      until: asked + rememberFor,
    }
    if (remembered.size >= rememberAtMost) remembered.clear()
    remembered.set(id, entry)
    return entry
  }

  async function prove(authorization: string | undefined): Promise<Grant> {
    const token = readBearer(authorization)
    if (!isToken(token)) throw refuse('The access token is malformed.')
    const entry = await recall(readTokenId(token))
    // Nothing more is told of a token until its secret proved right.
    if (entry === null || !timingSafeEqual(Buffer.from(hashToken(token)), entry.hash))
      throw refuse('The access token is not known.')
    if (entry.revoked) throw refuse('The access token was revoked.')
    if (entry.expires_at <= now()) throw refuse('The access token expired.')
    // Written with more than one space, a header could be of any length: what is remembered must stay small.
    if (authorization?.length === 'Bearer '.length + token.length) remember(authorization, entry)
    return entry.grant
  }

  function remember(authorization: string, entry: Remembered): void {
    const time = now()
    // Secrets are let go of soon, whether or not they are used again.
    if (time >= provenUntil || provenUntil > time + rememberFor || proven.size >= rememberAtMost) {
      proven.clear()
      provenUntil = time + rememberFor
    }
    proven.set(authorization, entry)
  }

  return authorization => {
    const entry = authorization === undefined ? undefined : proven.get(authorization)
    if (entry === undefined) return prove(authorization)
    const time = now()
    return isRecent(entry, time) && entry.expires_at > time ? entry.grant : prove(authorization)
  }
}

/** An entry that would last longer than one does comes from a clock that was set back. */
function isRecent({ until }: Remembered, time: number): boolean {
  return until > time && until <= time + rememberFor
}

function createGrant(record: TokenRecord): Grant {
  const customers = record.customers === null ? null : new Set(record.customers)
  return {
    token_id: record.id,
    mayRead: customerId => customers === null || customers.has(customerId),
  }
}

function readBearer(authorization: string | undefined): string {
  const credentials = authorization === undefined ? null : /^bearer(?: +(.*))?$/i.exec(authorization)
  const token = credentials?.[1]?.trim() ?? ''
  if (token === '')
    throw new ApiError(
      'missing_token',
      'Send an access token in the header Authorization: Bearer <ACCESS_TOKEN>.',
    )
  return token
}

function refuse(message: string): ApiError {
  return new ApiError('invalid_token', message)
}
