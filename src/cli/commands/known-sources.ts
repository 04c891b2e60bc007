/** The upstream systems that Fatura knows, for commands that read the store alone. */
import { invoiceXpressIdentity } from '../../invoicexpress/source-identity.ts'
import type { SourceIdentities } from '../../sources.ts'
import { stripeIdentity } from '../../stripe/source-identity.ts'

export const knownSources: SourceIdentities = { billing: stripeIdentity, documents: invoiceXpressIdentity }
