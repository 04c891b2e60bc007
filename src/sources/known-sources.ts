/** Names of the upstream systems, for code that reads only the store. */
import { invoiceXpressIdentity } from './invoicexpress/source-identity.ts'
import { stripeIdentity } from './stripe/source-identity.ts'

export const knownSources = { billing: stripeIdentity, documents: invoiceXpressIdentity }
