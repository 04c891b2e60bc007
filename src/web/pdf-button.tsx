/** Download buttons of PDFs: they wait while a PDF is being made, and save it under its own name. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { type DocumentKind, FaturaError, type Invoice } from '../client/client.ts'
import { findNoPdf } from '../invoice.ts'
import { usePage } from './context.ts'
import { Button } from './controls.tsx'
import { Countdown } from './notice.tsx'
import { describeProblem, type ProblemKind } from './problem.ts'
import { saveBlob } from './save.ts'
import type { Words } from './words.ts'

type State =
  | { step: 'idle' | 'loading' }
  | { step: 'waiting'; isBeingMade: boolean; until: number }
  | { step: 'saved'; name: string }
  | { step: 'failed'; problem: ProblemKind | 'documentMissing' | 'pdfDraft' }

export interface PdfProps {
  invoice: Pick<Invoice, 'id' | 'customer_id' | 'number' | 'status' | 'ix_id' | 'ix_status'>
  kind: DocumentKind
}

export function PdfButton({ invoice, kind }: PdfProps) {
  const { words } = usePage()
  const { state, isBusy, download, cancel } = useDownload({ invoice, kind })
  const name = nameOf(kind, words)
  const absence = findNoPdf(kind, invoice)
  const press = words[state.step === 'failed' ? 'again' : 'download']
  return (
    <div class="pdf stack">
      <p>
        <strong>{name}</strong>
        <span class="quiet">{kind === 'ix' ? words.pdfIxNote : words.pdfPaymentsNote}</span>
      </p>
      {absence !== null && <p class="quiet">{words[absence === 'draft' ? 'pdfDraft' : 'pdfNone']}</p>}
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
        <Progress state={state} />
      </p>
    </div>
  )
}

/** The same in a row of the list: nothing where there is no PDF, and words only where it does not come at once. */
export function RowPdf({ invoice, kind }: PdfProps) {
  const { words } = usePage()
  const { state, isBusy, download, cancel } = useDownload({ invoice, kind })
  if (findNoPdf(kind, invoice) !== null) return null
  const text = isBusy ? words.cancel : kind === 'ix' ? words.pdfIxBrief : words.pdfPayments
  const label = `${isBusy ? words.cancel : words.download}: ${nameOf(kind, words)} ${invoice.number ?? ''}`
  return (
    <>
      <Button text={text} aria-label={label} onClick={isBusy ? cancel : download} />
      {state.step !== 'idle' && (
        <span class={state.step === 'waiting' || state.step === 'failed' ? 'small' : 'hidden'} role="status">
          <Progress state={state} />
        </span>
      )}
    </>
  )
}

export function nameOf(kind: DocumentKind, words: Words): string {
  return kind === 'ix' ? words.column.document : words.pdfPayments
}

function useDownload({ invoice, kind }: PdfProps) {
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
