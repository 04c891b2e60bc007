/** Verifies a JWT's signature and registered claims with jose. Errors of jose become refusals. */
import { type CryptoKey, errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from 'jose'
import { isCustomerId } from '../../domain/invoice.ts'
import { clockSkewSeconds, early, expired, TokenRefusal, unsigned } from './grant.ts'

export async function verifyClaims(
  text: string,
  key: CryptoKey,
  now: () => number,
  options: JWTVerifyOptions & { algorithms: string[] },
): Promise<JWTPayload & { exp: number }> {
  try {
    const { payload } = await jwtVerify(text, key, {
      clockTolerance: clockSkewSeconds,
      currentDate: new Date(now()),
      ...options,
      requiredClaims: ['exp'],
    })
    return payload as JWTPayload & { exp: number }
  } catch (error) {
    throw explain(error)
  }
}

function explain(error: unknown): unknown {
  if (!(error instanceof errors.JOSEError)) return error
  if (error instanceof errors.JWSSignatureVerificationFailed)
    return new TokenRefusal(unsigned, { isGuess: true, lasts: true })
  if (error instanceof errors.JWTExpired) return new TokenRefusal(expired, { lasts: true })
  const { claim, reason } = error as Partial<errors.JWTClaimValidationFailed>
  if (claim === 'nbf' && reason === 'check_failed') return new TokenRefusal(early)
  return new TokenRefusal(claimProblems[String(claim)] ?? incomplete, { lasts: true })
}

const incomplete = 'The access token lacks a claim that is required, or has one of the wrong form.'
const claimProblems: Record<string, string> = {
  iss: 'The access token is not of the issuer that is trusted here.',
  aud: 'The access token is not meant for this service.',
}

/** A token's expiry plus the tolerated clock skew, in milliseconds since 1970. jose uses the same limit. */
export function endOf({ exp }: { exp: number }): number {
  return (exp + clockSkewSeconds) * 1000
}

/** Whether a claim is a customer id. A claim may have any type. */
export function namesCustomer(claim: unknown): claim is string {
  return typeof claim === 'string' && isCustomerId(claim)
}
