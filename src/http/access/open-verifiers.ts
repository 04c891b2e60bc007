/** Verification of JWTs. Imported only where it is configured: jose takes its time to load. */
import { TokenRefusal, type VerifyJwt } from './grant.ts'
import { openKeySet } from './key-set.ts'
import { linkType } from './link-form.ts'
import { createVerifyLink, type LinkOptions } from './verify-link.ts'
import { createVerifyProvider, type ProviderOptions } from './verify-provider.ts'

export interface VerifierOptions {
  /** Null: no identity provider is configured. */
  provider: ProviderOptions | null
  /** Null: customer links are for no address, and none works. */
  publicUrl: string | null
  findKey: LinkOptions['findKey']
  /** Unless given, a key that is not for every customer is for nobody. */
  coversCustomer?: LinkOptions['coversCustomer']
  onProblem(error: Error): void
  now?(): number
}

export function openVerifiers(options: VerifierOptions) {
  const { provider, publicUrl, findKey, coversCustomer = () => false, onProblem, now = Date.now } = options
  const keys = provider && openKeySet(provider.jwksUrl, onProblem)
  const verifyProvider = keys && createVerifyProvider(provider, keys, now)
  const verifyLink = publicUrl === null ? null : createVerifyLink({ publicUrl, findKey, coversCustomer, now })

  /** A token's type decides whether it is a link or the provider's; the other's keys and rules are never tried. */
  const verifyJwt: VerifyJwt = async (jwt, inTurn) => {
    if (Object.hasOwn(jwt.header, 'crit'))
      throw new TokenRefusal('The access token asks for an extension that is not supported.')
    const verify = jwt.header.typ === linkType ? verifyLink : verifyProvider
    if (verify === null) throw new TokenRefusal('The access token is of a kind that is not accepted here.')
    return verify(jwt, inTurn)
  }

  return { verifyJwt, close: () => keys?.close() }
}
