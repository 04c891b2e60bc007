import type { SourceIdentity } from '../source.ts'

export const stripeIdentity: SourceIdentity = { name: 'Stripe', system: 'stripe', streamPrefix: 'stripe' }
