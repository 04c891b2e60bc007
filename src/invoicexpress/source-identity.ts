import type { SourceIdentity } from '../sources.ts'

export const invoiceXpressIdentity: SourceIdentity = {
  name: 'InvoiceXpress',
  system: 'invoicexpress',
  streamPrefix: 'ix',
}
