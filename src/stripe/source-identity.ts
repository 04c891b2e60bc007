import type { SourceIdentity } from '../sources.ts'

export const stripeIdentity: SourceIdentity = { name: 'Stripe', system: 'stripe', streamPrefix: 'stripe' }
