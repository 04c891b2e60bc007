/** Stripe as the API uses it while a client waits: an invoice's lines, its PDF and its payment page. */
import { createGuardedCall } from '../calls/guarded-calls.ts'
import { isAllowed } from '../pdf/allowed-origins.ts'
import { fetchPdf } from '../pdf/fetch-pdf.ts'
import { type PaymentPlatform, SourceError } from '../source.ts'
import { createStripe, isStripesOwn, type StripeOptions } from './client.ts'
import { stripeFailures, unlessGone } from './failures.ts'
import { listLines, readLinePage } from './list-lines.ts'

/** Timeout of a request for lines. It is below the API's own time limit, so that a silent Stripe counts as a failure of Stripe. */
const linesTimeoutMs = 700
const retrieveTimeoutMs = 5_000

/** Calls per second, counted separately for lines and for PDFs. Stripe's limit is 100. */
const perSecond = 20

/** Origins of Stripe's PDFs, and of the pages that redirect to a PDF. */
const pdfOrigins = ['https://pay.stripe.com', 'https://invoice.stripe.com', 'https://files.stripe.com']

const pageOrigins = ['https://invoice.stripe.com', 'https://pay.stripe.com']

export function createPaymentPlatform(options: StripeOptions): PaymentPlatform {
  const guarded = createGuardedCall(stripeFailures)
  const stripe = createStripe(options, guarded.refusal)
  const isOwn = isStripesOwn(options.base)
  // A sandbox serves its pages and PDFs itself, from this machine.
  const origins = [new URL(options.base).origin]
  const guard = { origins: isOwn ? pdfOrigins : origins, allowPrivate: !isOwn }

  const retrieve = (invoiceId: string, signal: AbortSignal) =>
    guarded(retrieveTimeoutMs, signal, () =>
      unlessGone(invoiceId, () => stripe.invoices.retrieve(invoiceId, {}, { timeout: retrieveTimeoutMs })),
    )

  return {
    ...(isOwn && { perSecond }),
    refusal: guarded.refusal,
    async fetchLines(invoiceId, signal) {
      return guarded(linesTimeoutMs, signal, given =>
        unlessGone(invoiceId, () =>
          listLines(async after => {
            given.throwIfAborted()
            signal.throwIfAborted()
            const query = { limit: 100, ...(after !== undefined && { starting_after: after }) }
            return readLinePage(
              await stripe.invoices.listLineItems(invoiceId, query, { timeout: linesTimeoutMs }),
            )
          }),
        ),
      )
    },
    async openPdf(invoiceId, signal) {
      const invoice = await retrieve(invoiceId, signal)
      if (invoice === null) throw new SourceError('missing', 'Stripe does not know it')
      // Each download requests a new address, because an address holds a secret and expires.
      const { invoice_pdf } = invoice
      if (!invoice_pdf) throw new SourceError('not_ready', 'Stripe has no PDF of this invoice yet')
      return fetchPdf(invoice_pdf, guard, signal)
    },
    async findPaymentPage(invoiceId, signal) {
      const invoice = await retrieve(invoiceId, signal)
      const address = invoice?.status === 'open' ? invoice.hosted_invoice_url : null
      if (!address) return null
      const url = URL.parse(address)
      if (url === null || !isAllowed(url, isOwn ? pageOrigins : origins))
        throw new SourceError('failed', 'Stripe named a payment page of an origin that is not allowed')
      return url.href
    },
  }
}
