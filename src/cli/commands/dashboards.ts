/** Pages of the two systems about an invoice and its document. */
import type { Document } from '../../document.ts'
import { documentPaths } from '../../invoicexpress/document-source.ts'
import type { Pin } from '../../store/connector-store.ts'
import { readAccount } from '../../sync/pins.ts'
import { knownSources } from './known-sources.ts'

/** Null where the account, or the document, is not known. */
export interface Dashboards {
  stripe: string | null
  invoicexpress: string | null
}

export function dashboardsOf(pins: readonly Pin[], invoiceId: string, document: Document | null): Dashboards {
  const accountOf = (system: string) => pins.find(pin => pin.system === system)?.account ?? null
  const [billing, invoicing] = [
    accountOf(knownSources.billing.system),
    accountOf(knownSources.documents.system),
  ]
  const mode = billing !== null && readAccount(billing).mode === 'test' ? 'test/' : ''
  // An account is pinned by its name, or by its address.
  const base = invoicing?.includes('://') ? invoicing : `https://${invoicing}.app.invoicexpress.com`
  return {
    stripe: billing === null ? null : `https://dashboard.stripe.com/${mode}invoices/${invoiceId}`,
    invoicexpress:
      invoicing === null || document === null
        ? null
        : `${base}/${documentPaths[document.type]}/${document.id}`,
  }
}
