/** What the API asks of the two upstream systems while a client waits. The connectors implement it. */
import type { Line } from './invoice.ts'

/** A PDF on its way. The reader destroys `body` when the client goes away. */
export interface Pdf {
  body: NodeJS.ReadableStream
  /** In bytes, when the upstream tells. */
  size: number | null
}

export interface PaymentPlatform {
  /** All the lines of an invoice, in order; null when the platform does not know the invoice. Rejects with a `SourceError`. */
  fetchLines(invoiceId: string, signal: AbortSignal): Promise<readonly Line[] | null>
  /** The invoice's PDF as the platform has it now. Rejects with a `SourceError`. */
  openPdf(invoiceId: string, signal: AbortSignal): Promise<Pdf>
}

export interface InvoicingSystem {
  /** The certified document's PDF. Rejects with a `SourceError`. */
  openPdf(ixId: number, signal: AbortSignal): Promise<Pdf>
}

/** Why a source gave no answer: the same four outcomes whatever the upstream. */
export type SourceFailure = 'missing' | 'not_ready' | 'timeout' | 'failed'

export class SourceError extends Error {
  readonly failure: SourceFailure
  /** With `not_ready`: after how many seconds it may be ready. */
  readonly retryAfter: number | undefined

  constructor(
    failure: SourceFailure,
    message: string,
    options: { cause?: unknown; retryAfter?: number } = {},
  ) {
    super(message, { cause: options.cause })
    this.failure = failure
    this.retryAfter = options.retryAfter
  }
}
