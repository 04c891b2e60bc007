/** Saves the PDFs of invoices into a folder, within the upstreams' pace, each file atomically. */
import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type DocumentKind, findNoPdf, type Invoice } from '../invoice.ts'
import { safeFileName } from '../pdf/file-name.ts'
import { type InvoicingSystem, type PaymentPlatform, type Pdf, SourceError } from '../sources.ts'
import { createThrottle, type Throttle } from '../upstream/throttle.ts'
import { openPartFile } from './part-file.ts'

export type PdfOutcome = 'saved' | 'kept' | 'none' | 'failed'

export interface SavedPdf {
  invoice: Invoice
  kind: DocumentKind
  outcome: PdfOutcome
  /** In the folder; null when there is none. */
  file: string | null
  /** Why there is none. */
  detail: string | null
}

export interface PdfSources {
  payments: PaymentPlatform | null
  documents: InvoicingSystem | null
}

export type SavePdf = (invoice: Invoice, kind: DocumentKind) => Promise<SavedPdf>

/** The share of the API's pace: clients of the API go first. */
const share = 1 / 4
const inFlight = 4

/** Attempts for a PDF that may come later, and failures in a row after which an upstream is given up. */
const attempts = 4
const failuresToGiveUp = 10
/** Without a `Retry-After`. */
const usualPauseMs = 5_000
const longestPauseMs = 60_000

/** PDFs that are in the folder already are kept. */
export function createPdfSaver(folder: string, sources: PdfSources, signal: AbortSignal): SavePdf {
  const upstreams: Record<DocumentKind, Upstream> = {
    payments: createUpstream(sources.payments, ({ id }) => sources.payments?.openPdf(id, signal)),
    ix: createUpstream(
      sources.documents,
      ({ ix_id }) => ix_id !== null && sources.documents?.openPdf(ix_id, signal),
    ),
  }

  async function download(invoice: Invoice, upstream: Upstream, path: string): Promise<string | null> {
    for (let attempt = 1; ; attempt++) {
      if (upstream.failuresInRow >= failuresToGiveUp)
        return `not requested, after ${failuresToGiveUp} failures in a row`
      await unlessAborted(upstream.turns.take('', 'slowly'), signal)
      try {
        signal.throwIfAborted()
        await savePdf(await upstream.open(invoice), path)
        upstream.failuresInRow = 0
        return null
      } catch (error) {
        signal.throwIfAborted()
        if (!(error instanceof SourceError)) throw error
        const pauseMs = pauseAfter(error)
        if (pauseMs !== null && attempt < attempts) {
          upstream.turns.pause(pauseMs)
          continue
        }
        upstream.failuresInRow = error.failure === 'missing' ? 0 : upstream.failuresInRow + 1
        return error.message
      } finally {
        upstream.turns.done()
      }
    }
  }

  return async (invoice, kind) => {
    const missing = findNoPdf(kind, invoice)
    if (missing !== null) {
      const detail = missing === 'draft' ? 'it is a draft: it has no PDF yet' : 'no document is associated'
      return { invoice, kind, outcome: 'none', file: null, detail }
    }
    const file = pdfFileName(invoice, kind)
    const path = join(folder, file)
    if (await isThere(path)) return { invoice, kind, outcome: 'kept', file, detail: null }
    const failure = await download(invoice, upstreams[kind], path)
    return failure === null
      ? { invoice, kind, outcome: 'saved', file, detail: null }
      : { invoice, kind, outcome: 'failed', file: null, detail: failure }
  }
}

/** An upstream may have asked for a long pause. */
function unlessAborted(turn: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    turn.then(() => {
      signal.removeEventListener('abort', stop)
      resolve()
    })
  })
}

interface Upstream {
  turns: Throttle
  failuresInRow: number
  open(invoice: Invoice): Promise<Pdf>
}

function createUpstream(
  source: PaymentPlatform | InvoicingSystem | null,
  open: (invoice: Invoice) => Promise<Pdf> | false | undefined,
): Upstream {
  const perSecond = (source?.perSecond ?? Number.POSITIVE_INFINITY) * share
  return {
    turns: createThrottle({ perSecond: Math.min(perSecond, 1_000), inFlight }),
    failuresInRow: 0,
    async open(invoice) {
      const pdf = await open(invoice)
      if (!pdf) throw new SourceError('failed', 'the system that holds it is not connected')
      return pdf
    },
  }
}

/** Milliseconds until the next attempt; null when none makes sense. */
function pauseAfter({ failure, retryAfter }: SourceError): number | null {
  if (retryAfter !== undefined) return Math.min(retryAfter * 1_000, longestPauseMs)
  return failure === 'timeout' || failure === 'not_ready' ? usualPauseMs : null
}

async function savePdf({ body }: Pdf, path: string): Promise<void> {
  const file = await openPartFile(path)
  try {
    for await (const chunk of body) await file.write(chunk as Uint8Array)
    await file.finish()
  } finally {
    await file.discard()
  }
}

async function isThere(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null)
  return found?.isFile() === true && found.size > 0
}

/** Longer than any id of a payment platform. */
const longestId = 64

/** Begins with the day, so that a folder is in the order of issue; the id distinguishes invoices of the same number. */
export function pdfFileName({ issued_at, number, id }: Invoice, kind: DocumentKind): string {
  const named = number === null ? '' : safeFileName(number, 80)
  const identity = id.length <= longestId ? id : createHash('sha256').update(id).digest('hex').slice(0, 16)
  return `${[issued_at.slice(0, 10), ...(named === '' ? [] : [named]), identity, kind].join('_')}.pdf`
}
