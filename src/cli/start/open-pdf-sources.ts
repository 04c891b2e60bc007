/** Opens the systems that supply PDFs, and invoice lines that the store lacks. */
import type { InvoiceXpressOptions } from '../../sources/invoicexpress/client.ts'
import type { StripeOptions } from '../../sources/stripe/client.ts'

/** A source is null when its options are null. */
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
