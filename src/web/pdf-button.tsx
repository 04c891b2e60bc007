/** Buttons that download PDFs. A button waits while a PDF is being made, and saves the PDF under its own name. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { findNoPdf } from '../domain/invoice.ts'
import type { Downloads } from '../domain/page-settings.ts'
import { FaturaError, type ListedInvoice, type PdfKind } from '../sdk/client.ts'
import { usePage } from './context.ts'
import { Button } from './controls.tsx'
import { Countdown } from './notice.tsx'
import { describeProblem, type ProblemKind } from './problem.ts'
import { saveBlob } from './save.ts'

type State =
  | { step: 'idle' | 'loading' }
  | { step: 'waiting'; isBeingMade: boolean; until: number }
  | { step: 'saved'; name: string }
  | { step: 'failed'; problem: ProblemKind | 'documentMissing' | 'pdfDraft' }

type Downloadable = Pick<
  ListedInvoice,
  'id' | 'customer_id' | 'number' | 'status' | 'ix_id' | 'ix_status' | 'ix_sync_state' | 'document'
>

/** Returns the PDF that the row offers. `coming` means that the document is still to be issued. Null when no PDF exists or will exist. */
function mainPdfOf(invoice: Downloadable, downloads: Downloads): 'ix' | 'coming' | 'payments' | null {
  const { status, ix_id, ix_status, ix_sync_state } = invoice
  if (downloads.ix && ix_id !== null && (invoice.document?.status ?? ix_status) !== 'draft') return 'ix'
  const isComing = status !== 'draft' && status !== 'void' && ix_sync_state !== 'ignored'
  if (downloads.ix && isComing) return 'coming'
  return downloads.payments && findNoPdf('payments', invoice) === null ? 'payments' : null
}

/**
 * Offers the certified document's PDF. Without an invoicing system, or when no document will come, it offers the platform's PDF. While the
 * document is still to be issued, it shows a text.
 */
export function InvoicePdf({ invoice, class: name = '' }: { invoice: Downloadable; class?: string }) {
  const { words, downloads } = usePage()
  const number = invoice.document?.number ?? invoice.number ?? invoice.id
  const kind = mainPdfOf(invoice, downloads)
  if (kind === null) return null
  if (kind === 'coming') return <span class="quiet">{words.beingIssued}</span>
  const text = kind === 'payments' && downloads.ix ? words.pdfPayments : words.pdfIx
  return <PdfButton invoice={invoice} kind={kind} text={text} name={number} class={name} />
}

/** Whether the payment platform's PDF is offered in addition to the main PDF. */
export function hasOtherPdf(invoice: Downloadable, downloads: Downloads): boolean {
  const hasPlatforms = downloads.payments && findNoPdf('payments', invoice) === null
  return hasPlatforms && mainPdfOf(invoice, downloads) !== 'payments'
}

interface PdfButtonProps {
  invoice: Downloadable
  kind: PdfKind
  text: string
  /** Name of the invoice or document, so that screen readers announce what the button downloads. */
  name?: string
  class?: string
}

/** A status text appears beside the button only when the PDF does not come at once. */
export function PdfButton({ invoice, kind, text, name = '', class: look = '' }: PdfButtonProps) {
  const { words } = usePage()
  const { state, isBusy, download, cancel } = useDownload(invoice, kind)
  const press = isBusy ? words.cancel : text
  return (
    <span class="pdf">
      <Button
        text={press}
        class={look}
        aria-label={`${press} ${name}`.trim()}
        onClick={isBusy ? cancel : download}
      />
      {state.step !== 'idle' && (
        <span class={state.step === 'waiting' || state.step === 'failed' ? 'small' : 'hidden'} role="status">
          <Progress state={state} />
        </span>
      )}
    </span>
  )
}

function useDownload(invoice: Downloadable, kind: PdfKind) {
  const { client, session } = usePage()
  const [state, setState] = useState<State>({ step: 'idle' })
  const running = useRef<AbortController>(undefined)
  useEffect(() => () => running.current?.abort(), [])

  async function download(): Promise<void> {
    const stop = new AbortController()
    running.current = stop
    const update = (state: State) => !stop.signal.aborted && setState(state)
    update({ step: 'loading' })
    try {
      const pdf = await client.downloadPdf(session.customer, invoice.id, kind, {
        signal: stop.signal,
        onWait: ({ code }, waitMs) =>
          update({ step: 'waiting', isBeingMade: code === 'document_not_ready', until: Date.now() + waitMs }),
      })
      await saveBlob(await new Response(pdf.body).blob(), pdf.fileName)
      update({ step: 'saved', name: pdf.fileName })
    } catch (error) {
      const code = error instanceof FaturaError ? error.code : null
      // The client stops waiting after a while. The download starts again until the user cancels it.
      if (code === 'document_not_ready' && !stop.signal.aborted) return download()
      const problem =
        code === 'document_not_found'
          ? 'documentMissing'
          : code === 'document_not_issued'
            ? 'pdfDraft'
            : describeProblem(error, session.token).kind
      update({ step: 'failed', problem })
    }
  }
  function cancel(): void {
    running.current?.abort()
    setState({ step: 'idle' })
  }
  return { state, isBusy: state.step === 'loading' || state.step === 'waiting', download, cancel }
}

function Progress({ state }: { state: State }) {
  const { words } = usePage()
  return (
    <>
      {state.step === 'loading' && words.downloading}
      {state.step === 'waiting' && (
        <Countdown until={state.until} write={state.isBeingMade ? words.notReady : words.retryIn} />
      )}
      {state.step === 'saved' && words.saved(state.name)}
      {state.step === 'failed' && words[state.problem]}
    </>
  )
}
