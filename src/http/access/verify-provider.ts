import { hash } from 'node:crypto'
import { malformed, TokenRefusal, unsigned, type VerifyJwt } from './grant.ts'
import { isAlgorithm } from './import-keys.ts'
import type { KeySet } from './key-set.ts'
import { keepMs } from './short-cache.ts'
import { endOf, namesCustomer, verifyClaims } from './verify-claims.ts'

export interface ProviderOptions {
  jwksUrl: string
  issuer: string
  audience: string
  /** Name of the claim that holds one customer id or several. */
  customerClaim: string
  /** Scope that every token must have. Null when none is required. */
  scope: string | null
  /** `typ` that every token must have. Null accepts `JWT`, `at+jwt` and tokens without `typ`. */
  typ: string | null
}

export function createVerifyProvider(options: ProviderOptions, keys: KeySet, now: () => number): VerifyJwt {
  const { issuer, audience, customerClaim, scope } = options
  const types = options.typ === null ? defaultTypes : [plainType(options.typ)]

  return async ({ text, header }, withSlot) => {
    const { alg, typ, kid } = header
    if (!types.includes(plainType(typ)))
      throw new TokenRefusal('The access token is of a type that is not accepted here.')
    if (!isAlgorithm(alg))
      throw new TokenRefusal('The access token is signed with an algorithm that is not accepted.')
    if (kid !== undefined && typeof kid !== 'string') throw new TokenRefusal(malformed)
    const key = await keys.find(kid, alg)
    if (key === null) throw new TokenRefusal(unsigned, { isGuess: true })
    const rules = { algorithms: [alg], issuer, audience }
    const claims = await withSlot(() => verifyClaims(text, key.key, now, rules))
    if (scope !== null && !scopesOf(claims).includes(scope))
      throw new TokenRefusal(`The access token lacks the scope ${scope}.`, {
        code: 'insufficient_scope',
        lasts: true,
      })
    const customers = readCustomers(claims, customerClaim)
    return {
      grant: {
        token_id: nameBearer(issuer, claims.sub ?? text),
        invoice_id: null,
        every_customer: false,
        mayRead: customerId => customers.has(customerId),
      },
      expires_at: endOf(claims),
      confirm() {
        if (!keys.holds(key)) throw new TokenRefusal(unsigned)
        return performance.now() + keepMs
      },
    }
  }
}

/** Accepted `typ` when none is configured: the type of RFC 9068, the general type `JWT`, or none. */
const defaultTypes: readonly unknown[] = [undefined, 'jwt', 'at+jwt']

/** Normalizes a media type for comparison (RFC 7515, section 4.1.9). */
function plainType(typ: unknown): unknown {
  return typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : typ
}

/** RFC 9068 defines `scope`. Some providers use `scp` instead. */
function scopesOf(claims: Readonly<Record<string, unknown>>): unknown[] {
  const given = claims.scope ?? claims.scp
  return Array.isArray(given) ? given : String(given ?? '').split(' ')
}

/** Returns an empty set when the claim is missing. Such a token is genuine, but reads nothing. */
function readCustomers(claims: Readonly<Record<string, unknown>>, claim: string): Set<string> {
  const given = Object.hasOwn(claims, claim) ? claims[claim] : []
  const customers: unknown[] = Array.isArray(given) ? given : [given]
  if (!customers.every(namesCustomer))
    throw new TokenRefusal('The claim of the access token that names its customers is malformed.', {
      lasts: true,
    })
  return new Set(customers)
}

/** All tokens of one subject count as one bearer. Its name is a hash, because a subject may be an e-mail address. */
function nameBearer(issuer: string, subject: string): string {
  return `jwt_${hash('sha256', `${issuer}\n${subject}`).slice(0, 16)}`
}
