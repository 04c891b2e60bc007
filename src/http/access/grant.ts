import { ApiError, type ErrorCode } from '../../domain/errors.ts'
import type { Jwt } from './parse-jwt.ts'

export interface Grant {
  /** Identifies the bearer in logs and for the rate limit. Never the token itself or a secret part of it. */
  token_id: string
  /** The only invoice that may be read. Null when all invoices of the customer may be read. */
  invoice_id: string | null
  every_customer: boolean
  /** Returns a promise only when the store must be asked. */
  mayRead(customerId: string): boolean | Promise<boolean>
}

export const malformed = 'The access token is malformed.'
export const unsigned = 'The access token is not signed by a known key.'
export const expired = 'The access token expired.'
export const early = 'The access token is not valid yet.'

/** The refusal of a token. Its message goes to the client, so it repeats nothing of the token. */
export class TokenRefusal extends ApiError {
  /** Whether the token looks like a guess. Guesses are counted by address. */
  readonly isGuess: boolean
  /**
   * Whether the same token will be refused again for at least some seconds. Its signature is then not checked again.
   */
  readonly lasts: boolean

  constructor(message: string, { isGuess = false, lasts = false, code = 'invalid_token' as ErrorCode } = {}) {
    super(code, message)
    this.isGuess = isGuess
    this.lasts = lasts
  }
}

/** Tolerated difference between the clocks of two machines. */
export const clockSkewSeconds = 60

/** A verified JWT. It is valid until it expires, as long as its key is valid. */
export interface Proof {
  grant: Grant
  /** Expiry in milliseconds since 1970. */
  expires_at: number
  /**
   * Checks the key again. Returns the time until which the key need not be checked again, by the monotonic clock.
   * Throws or rejects when the key is no longer valid.
   */
  confirm(): number | Promise<number>
}

/** `withSlot` runs an expensive check when the queue gives it a slot. */
export type VerifyJwt = (jwt: Jwt, withSlot: <T>(check: () => Promise<T>) => Promise<T>) => Promise<Proof>
