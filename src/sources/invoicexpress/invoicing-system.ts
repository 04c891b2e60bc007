/** InvoiceXpress as the API uses it while a client waits: a document's PDF and QR code. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createGuardedCall } from '../calls/guarded-calls.ts'
import { fetchPdf, type PdfGuard } from '../pdf/fetch-pdf.ts'
import { type InvoicingSystem, SourceError } from '../source.ts'
import { createClient, type InvoiceXpressOptions, isInvoiceXpressOwn, withDeadline } from './client.ts'
import { invoiceXpressFailures, readPdfUrl, readQrUrl } from './read-answer.ts'

/** Time limits in milliseconds. `budget`: until the PDF is made. `answer`: for one answer. */
const defaultPatience = { budget: 10_000, answer: 5_000 }
export type Patience = typeof defaultPatience

/**
 * Calls per second. The connector makes 8 more per second. Together they make 720 of the 780 requests per minute that an account may send.
 * Repeated requests for an unfinished PDF are not counted.
 */
const perSecond = 4

const firstPauseMs = 250
const longestPollPauseMs = 2_000

/** Seconds after which an unfinished PDF is usually ready. */
const retryAfter = 5

const largestQrBytes = 1024 * 1024

export function createInvoicingSystem(
  options: InvoiceXpressOptions,
  { budget, answer } = defaultPatience,
): InvoicingSystem {
  const guarded = createGuardedCall(invoiceXpressFailures)
  const ask = createClient({ ...options, timeoutMs: answer }, guarded.refusal)
  const guard = pdfGuardFor(options)

  /** Returns the address of a PDF. Null while InvoiceXpress is making the PDF. */
  function findPdf(ixId: number, signal: AbortSignal): Promise<string | null> {
    return guarded(answer, signal, async () => {
      const found = await ask(`/api/pdf/${ixId}.json`, {}, signal)
      return found.status === 202 ? null : readPdfUrl(found)
    })
  }

  function awaitPdf(ixId: number, signal: AbortSignal): Promise<string> {
    const notReady = new SourceError('not_ready', 'InvoiceXpress is still making the PDF', { retryAfter })
    return withDeadline(budget, notReady, signal, async polling => {
      for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPollPauseMs)) {
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
      // Each download requests a new address, because anybody who has the address may open the PDF.
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

/** A sandbox serves PDFs itself from this machine, so private addresses are allowed for it. */
export function pdfGuardFor({ base, pdfOrigins }: InvoiceXpressOptions): PdfGuard {
  return isInvoiceXpressOwn(base)
    ? { origins: pdfOrigins ?? ['https://*.invoicexpress.com'], allowPrivate: false }
    : { origins: [new URL(base).origin, ...(pdfOrigins ?? [])], allowPrivate: true }
}
