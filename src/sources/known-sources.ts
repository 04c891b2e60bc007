/** The upstream systems that Fatura knows, for what reads the store alone. */
import { invoiceXpressIdentity } from './invoicexpress/source-identity.ts'
import { stripeIdentity } from './stripe/source-identity.ts'

export const knownSources = { billing: stripeIdentity, documents: invoiceXpressIdentity }
