/** From an Authorization header to what its bearer may read. */
import { timingSafeEqual } from 'node:crypto'
import { isIPv6 } from 'node:net'
import { ApiError } from '../errors.ts'
import { RecentMap } from './recent-map.ts'
import { hashToken, isToken, readTokenId } from './token.ts'
import { Turns } from './turns.ts'
import { createWindows, secondsLeft } from './windows.ts'

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

/** Where a request comes from: a socket is one. Its address is read only when a token has yet to prove right. */
export interface Client {
  readonly remoteAddress?: string | undefined
}

/** A promise only when the store has to be asked. */
export type Authenticate = (authorization: string | undefined, client?: Client) => Grant | Promise<Grant>

/** A revocation must be seen within a second; half of one leaves room for the request itself. */
const keepMs = 500
const maxRemembered = 10_000

/** How many unknown tokens one address may send within how many seconds, before only tokens that worked are let in. */
const failureLimit = { failures: 100, seconds: 10 }

/** Lookups of one address. Good tokens that come together, as after a restart, wait for each other and are not refused. */
const lookupLimits = { maxAtOnce: 20, maxWaiting: 1_000, maxWaitMs: 1_000 }

/** For how long a token that worked is let in whatever else its address sends. */
const keepWorkedMs = 60 * 60 * 1000
const maxWorked = 100_000

interface Remembered {
  hash: Buffer
  grant: Grant
  expires_at: number
  revoked: boolean
  until: number
}

/** That the store has no such token. */
type Unknown = Pick<Remembered, 'until'>

/**
 * Throws, or rejects with, `missing_token`, `invalid_token` or `rate_limited`. What the store says of a token, also that
 * there is none, is remembered for half a second, and so is which header proved right: hashing is then done twice a second,
 * not for every request. A lookup in a Map compares hashes that V8 seeds at random, so its time tells nothing of the secrets
 * that it holds.
 *
 * An address that sends many unknown tokens is refused without asking the store. Several clients may share an address, so a
 * token that worked within the last hour is let in all the same: what it costs the store is bounded by itself.
 */
export function createAuthenticate(
  findToken: (id: string) => TokenRecord | null | Promise<TokenRecord | null>,
  now: () => number = Date.now,
): Authenticate {
  const remembered = new RecentMap<Remembered>({ keepMs, maxEntries: maxRemembered })
  const unknown = new RecentMap<Unknown>({ keepMs, maxEntries: maxRemembered })
  const proven = new RecentMap<Remembered>({ keepMs, maxEntries: maxRemembered })
  const asking = new Map<string, Promise<Remembered | null>>()
  const failures = createWindows(failureLimit.seconds)
  const lookups = new Turns(lookupLimits)
  const worked = new RecentMap<true>({ keepMs: keepWorkedMs, maxEntries: maxWorked })

  async function recall(id: string, hash: string, address: string): Promise<Remembered | null> {
    const time = now()
    const known = remembered.get(id)
    if (known !== undefined && isRecent(known, time)) return known
    const missing = unknown.get(id)
    if (missing !== undefined && isRecent(missing, time)) return null
    // Requests that come while the store is being asked wait for that answer; none waits for one that may be refused
    // though its own token would not be.
    const hasWorked = worked.get(hash) === true
    const question = hasWorked ? id : `new ${id}`
    let answer = asking.get(question)
    if (answer === undefined) {
      answer = (hasWorked ? ask(id, address) : askInTurn(id, hash, address)).finally(() =>
        asking.delete(question),
      )
      asking.set(question, answer)
    }
    return answer
  }

  /** So that many that come at once are not all asked before the first of them failed. */
  async function askInTurn(id: string, hash: string, address: string): Promise<Remembered | null> {
    const end = await lookups.take(address)
    if (end === null)
      throw new ApiError('unavailable', 'The token could not be checked in time.', { retryAfter: 1 })
    try {
      checkFailures(address, hash)
      return await ask(id, address)
    } finally {
      end()
    }
  }

  async function ask(id: string, address: string): Promise<Remembered | null> {
    const time = now()
    const record = await findToken(id)
    const until = time + keepMs
    if (record === null) {
      unknown.set(id, { until }, time)
      failures.add(address, performance.now())
      return null
    }
    const entry = {
      hash: Buffer.from(record.hash),
      grant: createGrant(record),
      expires_at: record.expires_at ?? Number.POSITIVE_INFINITY,
      revoked: record.revoked_at !== null,
      until,
    }
    remembered.set(id, entry, time)
    return entry
  }

  async function prove(authorization: string | undefined, client: Client | undefined): Promise<Grant> {
    const token = readBearer(authorization)
    if (!isToken(token)) throw refuse('The access token is malformed.')
    const address = networkOf(client?.remoteAddress ?? '')
    const hash = hashToken(token)
    checkFailures(address, hash)
    const entry = await recall(readTokenId(token), hash, address)
    if (entry === null) throw refuse('The access token is not known.')
    // Nothing more is told of a token until its secret proved right.
    if (!timingSafeEqual(Buffer.from(hash), entry.hash)) {
      failures.add(address, performance.now())
      throw refuse('The access token is not known.')
    }
    if (entry.revoked) throw refuse('The access token was revoked.')
    const time = now()
    if (entry.expires_at <= time) throw refuse('The access token expired.')
    worked.set(hash, true, performance.now())
    // Written with more than one space, a header could be of any length: what is remembered must stay small.
    if (authorization?.length === 'Bearer '.length + token.length) proven.set(authorization, entry, time)
    return entry.grant
  }

  function checkFailures(address: string, hash: string): void {
    const nowMs = performance.now()
    const window = failures.find(address, nowMs)
    if (window === undefined || window.count < failureLimit.failures || worked.get(hash)) return
    throw new ApiError(
      'rate_limited',
      `This address sent ${failureLimit.failures} unknown access tokens within ${failureLimit.seconds} s.`,
      { retryAfter: secondsLeft(window, nowMs) },
    )
  }

  return (authorization, client) => {
    const entry = authorization === undefined ? undefined : proven.get(authorization)
    if (entry === undefined) return prove(authorization, client)
    const time = now()
    return isRecent(entry, time) && entry.expires_at > time ? entry.grant : prove(authorization, client)
  }
}

/** An entry that would last longer than one does comes from a clock that was set back. */
function isRecent({ until }: Unknown, time: number): boolean {
  return until > time && until <= time + keepMs
}

/** What failures are counted by: an IPv4 address, or the /64 network of an IPv6 one, of which anybody has a whole one. */
function networkOf(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address
  const [head = '', tail] = address.split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail !== undefined) {
    const last = tail === '' ? [] : tail.split(':')
    while (groups.length + last.length < 8) groups.push('0')
    groups.push(...last)
  }
  return groups.slice(0, 4).join(':')
}

function createGrant(record: TokenRecord): Grant {
  const customers = record.customers === null ? null : new Set(record.customers)
  return {
    token_id: record.id,
    mayRead: customerId => customers === null || customers.has(customerId),
  }
}

/** The scheme as a whole: what may be part of a scheme's name (RFC 9110, section 5.6.2) does not follow it. */
const bearerScheme = /^bearer(?![\w!#$%&'*+.^`|~-])/i

/** What stands behind the scheme and one or more spaces. Only spaces: no other character is white space here (RFC 9110). */
function readBearer(authorization = ''): string {
  const credentials = bearerScheme.test(authorization) ? authorization.slice('bearer'.length) : ''
  let [start, end] = [0, credentials.length]
  while (start < end && credentials[start] === ' ') start++
  while (start < end && credentials[end - 1] === ' ') end--
  if (start === end)
    throw new ApiError(
      'missing_token',
      'Send an access token in the header Authorization: Bearer <ACCESS_TOKEN>.',
    )
  if (start === 0) throw refuse('The access token is malformed.')
  return credentials.slice(start, end)
}

function refuse(message: string): ApiError {
  return new ApiError('invalid_token', message)
}
