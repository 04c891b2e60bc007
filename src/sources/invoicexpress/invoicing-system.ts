/** InvoiceXpress for the API, while a client waits: the PDF of a document, and its QR code. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createGuardedCall } from '../calls/guarded-calls.ts'
import { fetchPdf, type PdfGuard } from '../pdf/fetch-pdf.ts'
import { type InvoicingSystem, SourceError } from '../source.ts'
import { createClient, type InvoiceXpressOptions, isInvoiceXpressOwn, withDeadline } from './client.ts'
import { invoiceXpressFailures, readPdfUrl, readQrUrl } from './read-answer.ts'

/** In milliseconds, until the PDF is made; and for one answer, which is less. */
const defaultPatience = { budget: 10_000, answer: 5_000 }
export type Patience = typeof defaultPatience

/** With the connector's 8 a second, 720 of an account's 780 a minute. A PDF that is being made is polled more often. */
const perSecond = 4

const firstPauseMs = 250
const longestPauseMs = 2_000

/** Seconds by which a PDF is made. */
const retryAfter = 5

const largestQrBytes = 1024 * 1024

export function createInvoicingSystem(
  options: InvoiceXpressOptions,
  { budget, answer } = defaultPatience,
): InvoicingSystem {
  const guarded = createGuardedCall(invoiceXpressFailures)
  const ask = createClient({ ...options, timeoutMs: answer }, guarded.refusal)
  const guard = pdfGuardFor(options)

  /** The PDF's address; null while it is being made. */
  function findPdf(ixId: number, signal: AbortSignal): Promise<string | null> {
    return guarded(answer, signal, async () => {
      const found = await ask(`/api/pdf/${ixId}.json`, {}, signal)
      return found.status === 202 ? null : readPdfUrl(found)
    })
  }

  function awaitPdf(ixId: number, signal: AbortSignal): Promise<string> {
    const notReady = new SourceError('not_ready', 'InvoiceXpress is still making the PDF', { retryAfter })
    return withDeadline(budget, notReady, signal, async polling => {
      for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
        const url = await findPdf(ixId, polling)
        if (url !== null) return url
        await sleep(pauseMs, undefined, { signal: polling })
      }
    })
  }

  return {
    ...(isInvoiceXpressOwn(options.base) && { perSecond }),
    refusal: guarded.refusal,
    async openPdf(ixId, signal) {
      // A new address for every download: anybody who reads it may open the PDF.
      return fetchPdf(await awaitPdf(ixId, signal), guard, signal)
    },
    async openQr(ixId, signal) {
      const url = await guarded(answer, signal, async () =>
        readQrUrl(await ask(`/api/qr_codes/${ixId}.json`, {}, signal)),
      )
      const image = { ...guard, type: 'image/png', maximumBytes: largestQrBytes } as const
      return { ...(await fetchPdf(url, image, signal)), type: image.type }
    },
  }
}

/** A base that is not InvoiceXpress' own is a sandbox: it serves its PDFs itself, from this machine. */
export function pdfGuardFor({ base, pdfOrigins }: InvoiceXpressOptions): PdfGuard {
  return isInvoiceXpressOwn(base)
    ? { origins: pdfOrigins ?? ['https://*.invoicexpress.com'], allowPrivate: false }
    : { origins: [new URL(base).origin, ...(pdfOrigins ?? [])], allowPrivate: true }
}
