/** Stripe's library, in the one file that scripts/build.ts makes of it: the package itself is needed only for its types. */

import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type Stripe from 'stripe'
import { locateFile } from '../../http/package.ts'

export const StripeSdk = createRequire(import.meta.url)(
  fileURLToPath(locateFile('build/stripe.cjs')),
) as typeof Stripe
