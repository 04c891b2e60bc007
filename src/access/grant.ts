/** What a token allows, and what its refusal is. */
import { ApiError, type ErrorCode } from '../errors.ts'
import type { Jwt } from './parse-jwt.ts'

export interface Grant {
  /** Names the bearer in logs and is what the rate limit counts by; never the token itself, nor a part that is secret. */
  token_id: string
  /** The only invoice that may be read; null when all of the customer's may. */
  invoice_id: string | null
  /** A promise only when the store has to be asked. */
  mayRead(customerId: string): boolean | Promise<boolean>
}

export const malformed = 'The access token is malformed.'
export const unsigned = 'The access token is not signed by a known key.'
export const expired = 'The access token expired.'
export const early = 'The access token is not valid yet.'

/** Why a token that was sent is refused. The message goes to the client, so it repeats nothing of the token. */
export class TokenRefusal extends ApiError {
  /** Whether it is what guessing looks like, and is counted. */
  readonly isGuess: boolean
  /** Whether the same token will be refused again, for some seconds at least: then its signature is not checked again. */
  readonly lasts: boolean

  constructor(message: string, { isGuess = false, lasts = false, code = 'invalid_token' as ErrorCode } = {}) {
    super(code, message)
    this.isGuess = isGuess
    this.lasts = lasts
  }
}

/** How much another machine's clock may differ from this one's. */
export const clockSkewSeconds = 60

/** What a JWT proved. It holds until it expires, as long as whoever vouched for it still does. */
export interface Proof {
  grant: Grant
  /** In milliseconds. */
  expires_at: number
  /** Until when it need not be asked again, in milliseconds. Throws, or rejects, when nobody vouches for it any more. */
  confirm(): number | Promise<number>
}

/** Does what costs something, when its turn comes. */
export type InTurn = <T>(check: () => Promise<T>) => Promise<T>

export type VerifyJwt = (jwt: Jwt, inTurn: InTurn) => Promise<Proof>
