/** The invoice list: amount due, filters, rows, pages, downloads, and the chart. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { briefs } from '../domain/expanded.ts'
import type { InvoiceList as Answer, CustomerBalance, Invoice } from '../sdk/client.ts'
import { Chart } from './chart.tsx'
import { usePage } from './context.ts'
import { Button, Heading, Link } from './controls.tsx'
import { DownloadMenu } from './download-menu.tsx'
import { Filters } from './filters.tsx'
import { Freshness } from './freshness.tsx'
import { InvoiceTable } from './invoice-table.tsx'
import { Loading, Notice, ProblemNotice } from './notice.tsx'
import { OwedSummary } from './owed-summary.tsx'
import { PaperHead } from './statement.tsx'
import { pageSizes } from './url-state.ts'
import { useAnswer, useLive } from './use-live.ts'

export function InvoiceList() {
  const { client, session, nav, words, format, hidden } = usePage()
  const hasChart = !hidden.has('chart')
  const { filters, page, pageSize } = nav.state
  const query = { ...filters, page, page_size: pageSize, expand: briefs }
  const question = JSON.stringify(query)
  const { result, isCurrent, isBarred, problem, retry } = useLive<Answer>(
    `list ${session.customer} ${question}`,
    call => client.invoices.list(session.customer, query, call),
  )
  const etag = result?.etag ?? null
  // The summary is read after the list, so that it does not delay the rows. It is read again whenever the list's ETag changes.
  const sums = useAnswer(hasChart && etag !== null && (call => client.summary(session.customer, call)), [
    etag,
    client,
  ])
  const summary = sums?.data ?? null
  const balance = useBalance(etag)
  const changed = useChanged(isCurrent ? result?.data : undefined, question)
  const hasFilters = Object.keys(filters).length > 0
  const clear = () => nav.go({ filters: {}, page: 1 })
  const answer = result?.data
  const isLoading = problem === null && (answer === undefined || balance === null)
  const isList = answer !== undefined && !isLoading && !isBarred && (answer.total > 0 || hasFilters)

  return (
    <>
      {problem !== null && (
        <ProblemNotice problem={problem} retry={retry} hasContent={answer !== undefined} back={clear} />
      )}
      {isLoading && <Loading words={words} retry={retry} rows={pageSize} />}
      {isList && result !== null && (
        <>
          <CustomerName invoices={answer.invoices} />
          <OwedSummary balance={balance?.data ?? null} />
          <Filters clear={clear}>
            <p class="found strong" role="status">
              {words.found(format.count(answer.total), answer.total)}
            </p>
            <Freshness syncedAt={result.syncedAt} changes={changed.changes} />
          </Filters>
          <div class={`card ${isCurrent ? '' : 'stale'}`} aria-busy={!isCurrent}>
            {answer.total === 0 ? (
              <Notice title={words.noMatch} lead={words.noMatchLead}>
                <Button text={words.clear} class="primary" onClick={clear} />
              </Notice>
            ) : (
              <>
                <PrintHead answer={answer} />
                <InvoiceTable invoices={answer.invoices} changed={changed.ids} />
                <Pager page={answer.page} pages={answer.total_pages} />
              </>
            )}
          </div>
          {answer.total > 0 && !hidden.has('export') && <DownloadMenu total={answer.total} />}
          {summary !== null && hasChart && <Chart summary={summary} />}
        </>
      )}
      {!isBarred && !isLoading && answer?.total === 0 && !hasFilters && (
        <Notice title={words.none} lead={words.noneLead}>
          <Button text={words.again} class="primary" onClick={retry} />
        </Notice>
      )}
    </>
  )
}

/**
 * Reads the balance in parallel with the list. The page shows both together, so that rows do not move. Returns null until the answer comes.
 * `data` is null after a failure.
 */
function useBalance(etag: string | null) {
  const { client, session, shown } = usePage()
  const changes = useCount(etag)
  const key = `balance ${session.customer}`
  // The balance may have failed because of a refused token. Once the list has arrived, the balance is requested once more.
  const missedAt = useRef<number | null>(null)
  if (etag !== null && shown.get(key)?.data === null) missedAt.current = changes
  const answer = useAnswer<{ data: CustomerBalance | null }>(
    call => client.balance(session.customer, call).catch(() => ({ data: null })),
    [changes, missedAt.current === changes, client],
  )
  if (answer !== null) shown.set(key, answer)
  // After going back from an invoice, the last balance is shown at once.
  return (shown.get(key) ?? null) as typeof answer
}

/** Counts the changes of a text since its first value. */
function useCount(text: string | null): number {
  const seen = useRef<{ text: string; changes: number } | null>(null)
  if (text !== null && text !== seen.current?.text)
    seen.current = { text, changes: seen.current === null ? 0 : seen.current.changes + 1 }
  return seen.current?.changes ?? 0
}

/** Shows the customer's name. The name stays while a filter finds nothing. The line is empty until the list has arrived. */
function CustomerName({ invoices }: { invoices: readonly Invoice[] }) {
  const name = useRef('')
  name.current ||= invoices[0]?.display_name ?? ''
  return <p class="customer strong">{name.current || '\u00a0'}</p>
}

/** Header of the list on paper. On the screen, the page's title and pager show the same facts. */
function PrintHead({ answer }: { answer: Answer }) {
  const { words, format } = usePage()
  const { invoices, page, page_size, total } = answer
  const before = (page - 1) * page_size
  const found = words.found(format.count(total), total)
  return (
    <header class="on-paper">
      <Heading rank={2}>{words.history}</Heading>
      <PaperHead invoice={invoices[0]} />
      <p>
        {invoices.length === total
          ? found
          : words.part(format.count(before + 1), format.count(before + invoices.length), found)}
      </p>
    </header>
  )
}

/** Returns the ids of the invoices that changed while the same list was shown, and the number of such changes. */
function useChanged(answer: Answer | undefined, question: string) {
  const before = useRef<{ question: string; texts: Map<string, string> } | null>(null)
  const [changed, setChanged] = useState({ ids: new Set<string>(), changes: 0 })
  useEffect(() => {
    if (answer === undefined) return
    const texts = new Map(answer.invoices.map((invoice: Invoice) => [invoice.id, JSON.stringify(invoice)]))
    const known = before.current
    before.current = { question, texts }
    if (known === null || known.question !== question) return setChanged({ ids: new Set(), changes: 0 })
    const ids = new Set([...texts].filter(([id, text]) => known.texts.get(id) !== text).map(([id]) => id))
    if (ids.size > 0) setChanged(({ changes }) => ({ ids, changes: changes + 1 }))
  }, [answer, question])
  return changed
}

/** Links to the previous and next page, and the page size. */
function Pager({ page, pages }: { page: number; pages: number }) {
  const { nav, words, format } = usePage()
  return (
    <div class="pager row on-screen">
      <label class="row small">
        <span class="quiet">{words.pageSize}</span>
        <select
          value={nav.state.pageSize}
          onChange={({ currentTarget }) => nav.go({ pageSize: Number(currentTarget.value), page: 1 })}
        >
          {pageSizes.map(size => (
            <option key={size}>{size}</option>
          ))}
        </select>
      </label>
      <nav class="row small" aria-label={words.pages}>
        <Step page={page - 1} isThere={page > 1} text={words.previous} />
        <span aria-current="page">{words.page(format.count(page), format.count(pages))}</span>
        <Step page={page + 1} isThere={page < pages} text={words.next} />
      </nav>
    </div>
  )
}

function Step({ page, isThere, text }: { page: number; isThere: boolean; text: string }) {
  if (!isThere) return <Button text={text} disabled />
  return (
    <Link to={{ page }} class="button">
      {text}
    </Link>
  )
}
