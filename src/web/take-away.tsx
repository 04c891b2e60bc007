/** All that the filters find, to take along: a table, the PDFs, a statement. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { usePage } from './context.ts'
import { createCsv } from './csv.ts'
import { Link } from './link.tsx'
import { describeProblem, type ProblemKind } from './problem.ts'
import { chooseFile, saveBlob } from './save.ts'

type State =
  | { step: 'idle' }
  | { step: 'running'; done: number }
  | { step: 'ended'; message: 'done' | 'cancelled' | ProblemKind; hasChanged: boolean; missing: number }

export function TakeAway({ total }: { total: number }) {
  const { client, session, nav, words, format, language } = usePage()
  const [state, setState] = useState<State>({ step: 'idle' })
  const running = useRef<AbortController>(undefined)
  useEffect(() => () => running.current?.abort(), [])

  /** Walks over all pages; each way of taking along makes something of them. */
  async function take(
    make: (
      walk: ReturnType<typeof client.invoices.all>,
      signal: AbortSignal,
      onMissing: () => void,
    ) => Promise<void>,
  ): Promise<void> {
    const stop = new AbortController()
    running.current = stop
    setState({ step: 'running', done: 0 })
    const walk = client.invoices.all(session.customer, nav.place.filters, { signal: stop.signal })
    let missing = 0
    let message: 'done' | 'cancelled' | ProblemKind = 'done'
    try {
      await make(walk, stop.signal, () => missing++)
    } catch (error) {
      message = stop.signal.aborted ? 'cancelled' : describeProblem(error, session.token).kind
    }
    setState({ step: 'ended', message, hasChanged: walk.changed, missing })
  }
  const onStep = (done: number) => setState({ step: 'running', done })

  const takeCsv = () =>
    take(async walk => {
      const csv = createCsv(language, words)
      const rows = [csv.head]
      for await (const invoice of walk) {
        rows.push(csv.row(invoice))
        if (walk.seen % 50 === 0) onStep(walk.seen)
      }
      await saveBlob(new Blob(rows, { type: 'text/csv;charset=utf-8' }), `${fileName}.csv`)
    })

  async function takeZip(): Promise<void> {
    const write = await chooseFile(`${fileName}.zip`)
    if (write === null) return
    await take(async (walk, signal, onMissing) => {
      const { zipPdfs } = await import('./zip.ts')
      await write(zipPdfs({ client, walk, language, words, signal, onStep, onMissing }), signal)
    })
  }

  const { date_from, date_to } = nav.place.filters
  const fileName = ['invoices', session.customer, date_from, date_to].filter(Boolean).join('_')
  const isRunning = state.step === 'running'
  return (
    <section class="take" aria-label={words.take}>
      <h2>{words.take}</h2>
      <div class="actions">
        <button type="button" title={words.csvHint} disabled={isRunning} onClick={takeCsv}>
          {words.csv}
        </button>
        <button type="button" title={words.zipHint} disabled={isRunning} onClick={takeZip}>
          {words.zip}
        </button>
        <Link to={{ isStatement: true, page: 1 }} class="button">
          {words.statement}
        </Link>
        {isRunning && (
          <>
            <progress value={state.done} max={total} aria-label={words.take} />
            <span>{words.progress(format.count(state.done), format.count(total))}</span>
            <button type="button" onClick={() => running.current?.abort()}>
              {words.cancel}
            </button>
          </>
        )}
      </div>
      <p class="said" role="status">
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
