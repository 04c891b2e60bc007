/** Grants and refusals of tokens. */
import { ApiError, type ErrorCode } from '../../domain/errors.ts'
import type { Jwt } from './parse-jwt.ts'

export interface Grant {
  /** Names the bearer in logs and is what the rate limit counts by; never the token itself, nor a part that is secret. */
  token_id: string
  /** The only invoice that may be read; null when all of the customer's may. */
  invoice_id: string | null
  every_customer: boolean
  /** A promise only when the store has to be asked. */
  mayRead(customerId: string): boolean | Promise<boolean>
}

export const malformed = 'The access token is malformed.'
export const unsigned = 'The access token is not signed by a known key.'
export const expired = 'The access token expired.'
export const early = 'The access token is not valid yet.'

/** The refusal of a token. The message goes to the client, so it repeats nothing of the token. */
export class TokenRefusal extends ApiError {
  /** Whether it looks like guessing, and is counted. */
  readonly isGuess: boolean
  /** Whether the same token will be refused again, for some seconds at least: then its signature is not checked again. */
  readonly lasts: boolean

  constructor(message: string, { isGuess = false, lasts = false, code = 'invalid_token' as ErrorCode } = {}) {
    super(code, message)
    this.isGuess = isGuess
    this.lasts = lasts
  }
}

/** Tolerated difference between another machine's clock and this one's. */
export const clockSkewSeconds = 60

/** A verified JWT. It holds until it expires, as long as its key does. */
export interface Proof {
  grant: Grant
  /** Milliseconds since 1970. */
  expires_at: number
  /** Time of the next check, by the monotonic clock. Throws, or rejects, when the key no longer holds. */
  confirm(): number | Promise<number>
}

/** `inTurn` runs an expensive check when its turn comes. */
export type VerifyJwt = (jwt: Jwt, inTurn: <T>(check: () => Promise<T>) => Promise<T>) => Promise<Proof>
