/** The systems that PDFs come from, and lines that are not stored. */
import type { InvoiceXpressOptions } from '../../sources/invoicexpress/client.ts'
import type { StripeOptions } from '../../sources/stripe/client.ts'

/** Null where there are no options. */
export async function openPdfSources(
  stripe: StripeOptions | null,
  invoiceXpress: InvoiceXpressOptions | null,
) {
  return {
    payments:
      stripe && (await import('../../sources/stripe/payment-platform.ts')).createPaymentPlatform(stripe),
    documents:
      invoiceXpress &&
      (await import('../../sources/invoicexpress/invoicing-system.ts')).createInvoicingSystem(invoiceXpress),
  }
}
