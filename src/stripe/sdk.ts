/** Stripe's library. It is hundreds of files: as CommonJS they load in two thirds of the time that they take as ES modules. */
import { createRequire } from 'node:module'
import type Stripe from 'stripe'

export const StripeSdk = createRequire(import.meta.url)('stripe') as typeof Stripe
