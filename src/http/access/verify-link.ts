/** Verifies customer links by the rules in link-form.ts. */
import { type CryptoKey, importJWK } from 'jose'
import { isInvoiceId } from '../../domain/invoice.ts'
import { clockSkewSeconds, early, TokenRefusal, unsigned, type VerifyJwt } from './grant.ts'
import { isKeyId, linkAlgorithm, maxLinkSeconds } from './link-form.ts'
import { type CoversCustomer, cacheScopes } from './scopes.ts'
import { cacheShortly } from './short-cache.ts'
import { endOf, namesCustomer, verifyClaims } from './verify-claims.ts'

interface KeyRecord {
  kid: string
  x: string
  every_customer: boolean
  revoked_at: number | null
}

export interface LinkOptions {
  publicUrl: string
  findKey(kid: string): KeyRecord | null | Promise<KeyRecord | null>
  coversCustomer: CoversCustomer
  now(): number
}

export function createVerifyLink({ publicUrl, findKey, coversCustomer, now }: LinkOptions): VerifyJwt {
  const covers = cacheScopes(coversCustomer)
  const keys = cacheShortly(async kid => {
    const found = await findKey(kid)
    if (found === null) return null
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: found.x }
    return { ...found, key: (await importJWK(jwk, linkAlgorithm)) as CryptoKey }
  })

  return async ({ text, header }, withSlot) => {
    const { alg, typ, kid, ...others } = header
    if (alg !== linkAlgorithm || Object.keys(others).length > 0 || !isKeyId(kid))
      throw new TokenRefusal('The header of the link is not the one of a customer link.')
    const claims = await withSlot(async () => {
      const { value: found } = await keys.find(kid, undefined)
      if (found === null) throw new TokenRefusal(unsigned, { isGuess: true })
      const rules = { algorithms: [linkAlgorithm], audience: publicUrl }
      return verifyClaims(text, found.key, now, rules)
    })
    const { sub, invoice, aud, iat, exp } = claims
    if (!namesCustomer(sub) || !isInvoice(invoice) || aud !== publicUrl || !isSeconds(iat) || !isSeconds(exp))
      throw new TokenRefusal('The link lacks a claim that is required, or has one of the wrong form.', {
        lasts: true,
      })
    if (exp - iat > maxLinkSeconds)
      throw new TokenRefusal('The link is made for longer than 24 hours.', { lasts: true })
    if (iat > now() / 1000 + clockSkewSeconds) throw new TokenRefusal(early)
    return {
      // All links of one key for one customer count as one bearer.
      grant: {
        token_id: `${kid}:${sub}`,
        invoice_id: invoice ?? null,
        every_customer: false,
        mayRead: customerId => customerId === sub,
      },
      expires_at: endOf({ exp }),
      async confirm() {
        const { value: key, until } = await keys.find(kid, undefined)
        if (key === null) throw new TokenRefusal(unsigned)
        if (key.revoked_at !== null) throw new TokenRefusal('The key of the link was revoked.')
        if (!key.every_customer && !(await covers(kid, sub)))
          throw new TokenRefusal('The key of the link may not sign for this customer.')
        return until
      },
    }
  }
}

function isInvoice(value: unknown): value is string | undefined {
  return value === undefined || (typeof value === 'string' && isInvoiceId(value))
}

function isSeconds(value: unknown): value is number {
  return Number.isSafeInteger(value)
}
