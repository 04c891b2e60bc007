/** Stripe's library, which scripts/build.ts bundles into one file. The package itself is needed only for its types. */

import { createRequire } from 'node:module'
import type Stripe from 'stripe'

export const StripeSdk = createRequire(import.meta.resolve('fatura/package.json'))(
  './build/stripe.cjs',
) as typeof Stripe
