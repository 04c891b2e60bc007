/** Downloads of all invoices that match the filters: a table, the PDFs, and a statement. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { dayIn } from '../domain/calendar.ts'
import { expansions } from '../domain/expanded.ts'
import { createInvoiceCsv, isForBooks } from '../domain/invoice-csv.ts'
import type { InvoiceWalk } from '../sdk/client.ts'
import { usePage } from './context.ts'
import { Button, Heading, Link } from './controls.tsx'
import { describeProblem, type ProblemKind } from './problem.ts'
import { chooseFile, saveBlob } from './save.ts'

/** How a download ended. `noPdfs` means that every PDF failed. */
type Outcome = 'done' | 'noPdfs' | 'cancelled' | ProblemKind

type State =
  | { step: 'idle' }
  | { step: 'running'; done: number }
  | { step: 'ended'; message: Outcome; hasChanged: boolean; missing: number }

export function DownloadMenu({ total }: { total: number }) {
  const { words, format, downloads } = usePage()
  const { state, downloadCsv, downloadZip, cancel } = useDownloads()
  const isRunning = state.step === 'running'
  return (
    <section class="download-menu stack on-screen" aria-label={words.export}>
      <Heading rank={2}>{words.export}</Heading>
      <div class="actions row">
        <Button text={words.csv} title={words.csvHint} disabled={isRunning} onClick={downloadCsv} />
        {(downloads.ix || downloads.payments) && (
          <Button text={words.zip} title={words.zipHint} disabled={isRunning} onClick={downloadZip} />
        )}
        <Link to={{ isStatement: true, page: 1 }} class="button">
          {words.statement}
        </Link>
        {isRunning && (
          <>
            <progress value={state.done} max={total} aria-label={words.export} />
            <span>{words.progress(format.count(state.done), format.count(total))}</span>
            <Button text={words.cancel} onClick={cancel} />
          </>
        )}
      </div>
      <p class="small" role="status">
        {state.step === 'ended' && (
          <>
            {words[state.message]} {state.hasChanged && words.walkChanged}{' '}
            {state.missing > 0 && words.zipMissing(state.missing)}
          </>
        )}
      </p>
    </section>
  )
}

function useDownloads() {
  const page = usePage()
  const { session, nav, language, brand } = page
  const { state, walkAll, onStep, cancel } = useWalk()
  const { date_from, date_to, status } = nav.state.filters
  const fileName = ['invoices', session.customer, date_from, date_to].filter(Boolean).join('_')

  const downloadCsv = () =>
    walkAll(async walk => {
      const csv = createInvoiceCsv(language, dayIn(brand.timeZone))
      const rows = [csv.head]
      for await (const invoice of walk) {
        if (isForBooks(invoice, status)) rows.push(csv.row(invoice))
        if (walk.seen % 50 === 0) onStep(walk.seen)
      }
      await saveBlob(new Blob(rows, { type: 'text/csv;charset=utf-8' }), `${fileName}.csv`)
    })

  async function downloadZip(): Promise<void> {
    const write = await chooseFile(`${fileName}.zip`)
    if (write === null) return
    await walkAll(async (walk, signal, onPdf) => {
      const { zipPdfs } = await import('./zip.ts')
      await write(zipPdfs({ ...page, status, walk, signal, onStep, onPdf }), signal)
    })
  }
  return { state, downloadCsv, downloadZip, cancel }
}

type Make = (walk: InvoiceWalk, signal: AbortSignal, onPdf: (isFetched: boolean) => void) => Promise<void>

/** Reads all pages of the list. Only one such download runs at a time. */
function useWalk() {
  const { client, session, nav } = usePage()
  const [state, setState] = useState<State>({ step: 'idle' })
  const running = useRef<AbortController>(undefined)
  useEffect(() => () => running.current?.abort(), [])

  async function walkAll(make: Make): Promise<void> {
    const stop = new AbortController()
    running.current = stop
    setState({ step: 'running', done: 0 })
    const query = { ...nav.state.filters, expand: expansions }
    const walk = client.invoices.all(session.customer, query, { signal: stop.signal })
    let fetched = 0
    let missing = 0
    let message: Outcome = 'done'
    try {
      await make(walk, stop.signal, isFetched => (isFetched ? fetched++ : missing++))
      if (missing > 0 && fetched === 0) message = 'noPdfs'
    } catch (error) {
      message = stop.signal.aborted ? 'cancelled' : describeProblem(error, session.token).kind
    }
    setState({ step: 'ended', message, hasChanged: walk.changed, missing })
  }
  return {
    state,
    walkAll,
    onStep: (done: number) => setState({ step: 'running', done }),
    cancel: () => running.current?.abort(),
  }
}
