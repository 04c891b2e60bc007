import type { SourceIdentity } from '../source.ts'
import type { InvoiceXpressOptions } from './client.ts'

export const invoiceXpressIdentity: SourceIdentity = {
  name: 'InvoiceXpress',
  system: 'invoicexpress',
  streamPrefix: 'ix',
}

/** Names the account by its configured name, or else by its address. */
export function invoicingAccountOf({ account, base }: Pick<InvoiceXpressOptions, 'account' | 'base'>) {
  return { source: invoiceXpressIdentity, account: account ?? new URL(base).origin }
}
