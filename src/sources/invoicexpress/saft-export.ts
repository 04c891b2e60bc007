/**
 * Downloads InvoiceXpress' SAF-T file of a month. InvoiceXpress makes
 * the file on request. Anybody who has the file's address can open it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createPacedCall } from '../calls/paced-calls.ts'
import { isFilled, shape } from '../calls/shape.ts'
import { fetchPdf } from '../pdf/fetch-pdf.ts'
import { SourceError } from '../source.ts'
import { createClient, type InvoiceXpressOptions } from './client.ts'
import { paceFor } from './document-source.ts'
import { pdfGuardFor } from './invoicing-system.ts'
import { invoiceXpressFailures, readAs, readObject } from './read-answer.ts'

type OnWait = (seconds: number) => void

/** Time limits in milliseconds. `budgetMs`: until the file is made. `deadlineMs`: until the file is downloaded. */
const defaultLimits = { budgetMs: 15 * 60_000, deadlineMs: 60 * 60_000 }
const firstPauseMs = 1_000
const longestPollPauseMs = 10_000

/** Maximum size of the file, enough for a month of a million documents. */
const maximumBytes = 4 * 1024 ** 3

const made = shape({ url: isFilled })

/**
 * Returns the file's bytes, as XML or a ZIP archive. While InvoiceXpress makes the
 * file, `onWait` gets the seconds since the start. Rejects with a `SourceError`.
 */
export async function openSaftExport(
  options: InvoiceXpressOptions,
  month: string,
  onWait: OnWait,
  { budgetMs, deadlineMs } = defaultLimits,
): Promise<AsyncIterable<Uint8Array>> {
  const url = await awaitExport(options, month, onWait, budgetMs)
  const guard = { ...pdfGuardFor(options), maximumBytes, deadlineMs, type: '*/*' } as const
  const { body } = await fetchPdf(url, guard, new AbortController().signal).catch(rename)
  return renameFailure(body as AsyncIterable<Uint8Array>)
}

async function awaitExport(options: InvoiceXpressOptions, month: string, onWait: OnWait, budgetMs: number) {
  const call = createPacedCall(paceFor(options.base), invoiceXpressFailures)
  const ask = createClient(options, call.refusal)
  const [year = '', number = ''] = month.split('-')
  // InvoiceXpress documents the parameter as `year`, but its examples use `years`. The request sends both.
  const query = { year, years: year, month: String(Number(number)) }
  const began = performance.now()
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPollPauseMs)) {
    const answer = await call(async () => {
      const found = await ask('/api/export_saft.json', query)
      return found.status === 202 ? null : readObject(found)
    })
    if (answer !== null) return readUrl(answer, month)
    const waitedMs = performance.now() - began
    if (waitedMs + pauseMs > budgetMs)
      throw new SourceError(
        'not_ready',
        `InvoiceXpress is still making the SAF-T file of ${month} after ${Math.round(waitedMs / 1_000)} s. Try again later, or name the file`,
      )
    onWait(Math.round(waitedMs / 1_000))
    await sleep(pauseMs)
  }
}

/** For a month without documents, InvoiceXpress sends a message in place of the address. */
function readUrl(answer: Record<string, unknown>, month: string): string {
  if (answer.url === undefined && typeof answer.message === 'string')
    throw new SourceError(
      'missing',
      `InvoiceXpress has no SAF-T file of ${month}, because it found no documents`,
      {
        scope: 'record',
      },
    )
  return readAs(made, answer, 'a SAF-T file').url
}

async function* renameFailure(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } catch (error) {
    rename(error)
  }
}

/** Replaces "PDF" in errors of `fetchPdf`, because this file is a SAF-T file. */
function rename(error: unknown): never {
  if (!(error instanceof SourceError)) throw error
  const message = error.message
    .replace(/\bPDF\b/, 'SAF-T file')
    .replace('that is not allowed', 'that INVOICEXPRESS_PDF_ORIGINS does not allow')
  throw new SourceError(error.failure, message)
}
