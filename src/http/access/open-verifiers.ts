/** Verifies JWTs. This module is imported only where JWTs are configured, because jose is slow to load. */
import { TokenRefusal, type VerifyJwt } from './grant.ts'
import { openKeySet } from './key-set.ts'
import { linkType } from './link-form.ts'
import { createVerifyLink, type LinkOptions } from './verify-link.ts'
import { createVerifyProvider, type ProviderOptions } from './verify-provider.ts'

export interface VerifierOptions {
  /** Null when no identity provider is configured. */
  provider: ProviderOptions | null
  /** Null when PUBLIC_URL is not set. No customer link is valid then. */
  publicUrl: string | null
  findKey: LinkOptions['findKey']
  /** Asked only for a key that is not for every customer. By default, such a key is valid for no customer. */
  coversCustomer?: LinkOptions['coversCustomer']
  onProblem(error: Error): void
  now?(): number
}

export function openVerifiers(options: VerifierOptions) {
  const { provider, publicUrl, findKey, coversCustomer = () => false, onProblem, now = Date.now } = options
  const keys = provider && openKeySet(provider.jwksUrl, onProblem)
  const verifyProvider = keys && createVerifyProvider(provider, keys, now)
  const verifyLink = publicUrl === null ? null : createVerifyLink({ publicUrl, findKey, coversCustomer, now })

  /**
   * A token's type decides whether the rules of links or those of the provider apply. The other keys and rules are
   * never tried.
   */
  const verifyJwt: VerifyJwt = async (jwt, withSlot) => {
    if (Object.hasOwn(jwt.header, 'crit'))
      throw new TokenRefusal('The access token asks for an extension that is not supported.')
    const verify = jwt.header.typ === linkType ? verifyLink : verifyProvider
    if (verify === null) throw new TokenRefusal('The access token is of a kind that is not accepted here.')
    return verify(jwt, withSlot)
  }

  return { verifyJwt, close: () => keys?.close() }
}
