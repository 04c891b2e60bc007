/** A PDF's download button: waits while the PDF is being made, and saves it under its own name. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { type DocumentKind, FaturaError, type InvoiceDetail } from '../client/client.ts'
import { Button } from './button.tsx'
import { usePage } from './context.ts'
import { useSecondsUntil } from './notice.tsx'
import { describeProblem, type ProblemKind } from './problem.ts'
import { saveBlob } from './save.ts'

type State =
  | { step: 'idle' | 'loading' }
  | { step: 'waiting'; isBeingMade: boolean; until: number }
  | { step: 'saved'; name: string }
  | { step: 'failed'; problem: ProblemKind | 'documentMissing' | 'pdfDraft' }

export function PdfButton({ invoice, kind }: { invoice: InvoiceDetail; kind: DocumentKind }) {
  const { client, session, words } = usePage()
  const [state, setState] = useState<State>({ step: 'idle' })
  const running = useRef<AbortController>(undefined)
  useEffect(() => () => running.current?.abort(), [])

  const name = kind === 'ix' ? words.column.document : words.pdfPayments
  const absence = absenceOf(invoice, kind)
  const press = words[state.step === 'failed' ? 'again' : 'download']
  const isBusy = state.step === 'loading' || state.step === 'waiting'

  async function download(): Promise<void> {
    const stop = new AbortController()
    running.current = stop
    const update = (state: State) => !stop.signal.aborted && setState(state)
    update({ step: 'loading' })
    try {
      const pdf = await client.downloadPdf(invoice.customer_id, invoice.id, kind, {
        signal: stop.signal,
        onWait: ({ code }, waitMs) =>
          update({ step: 'waiting', isBeingMade: code === 'document_not_ready', until: Date.now() + waitMs }),
      })
      await saveBlob(await new Response(pdf.body).blob(), pdf.fileName)
      update({ step: 'saved', name: pdf.fileName })
    } catch (error) {
      const code = error instanceof FaturaError ? error.code : null
      // The client has waited for as long as it does: go on until somebody cancels.
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

  return (
    <div class="pdf stack">
      <p>
        <strong>{name}</strong>
        <span class="quiet">{kind === 'ix' ? words.pdfIxNote : words.pdfPaymentsNote}</span>
      </p>
      {absence !== null && <p class="quiet">{words[absence]}</p>}
      {absence === null && !isBusy && (
        <Button
          text={press}
          class="primary"
          aria-label={`${press}: ${name} ${invoice.number ?? ''}`}
          onClick={download}
        />
      )}
      {isBusy && <Button text={words.cancel} onClick={cancel} />}
      <p class="small" role="status">
        {state.step === 'loading' && words.downloading}
        {state.step === 'waiting' && <Waiting {...state} />}
        {state.step === 'saved' && words.saved(state.name)}
        {state.step === 'failed' && words[state.problem]}
      </p>
    </div>
  )
}

/** The word that explains why there is no PDF; null when there should be one. */
function absenceOf({ status, downloads, ix_status }: InvoiceDetail, kind: DocumentKind) {
  if (kind === 'payments') return status === 'draft' ? 'pdfDraft' : null
  if (downloads.ix === null) return 'pdfNone'
  return ix_status === 'draft' ? 'pdfDraft' : null
}

function Waiting({ isBeingMade, until }: { isBeingMade: boolean; until: number }) {
  const { words, format } = usePage()
  const seconds = format.count(useSecondsUntil(until))
  return <span aria-live="off">{isBeingMade ? words.notReady(seconds) : words.retryIn(seconds)}</span>
}
