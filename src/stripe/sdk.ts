/**
 * Stripe's library. It is hundreds of files: in the one that `npm ci` makes of them, they load in half the time. Where that is
 * missing, as CommonJS, which takes two thirds of what they take as ES modules.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type Stripe from 'stripe'

const inOneFile = fileURLToPath(new URL('../../build/stripe.cjs', import.meta.url))

export const StripeSdk = createRequire(import.meta.url)(
  existsSync(inOneFile) ? inOneFile : 'stripe',
) as typeof Stripe
