/** The list: amounts to pay, chart, filters, rows, pages, downloads. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { InvoiceList as Answer, CustomerBalance, Invoice } from '../client/client.ts'
import { Chart } from './chart.tsx'
import { usePage } from './context.ts'
import { Button, Link } from './controls.tsx'
import { DownloadMenu } from './download-menu.tsx'
import { Filters } from './filters.tsx'
import { Freshness } from './freshness.tsx'
import { InvoiceTable } from './invoice-table.tsx'
import { Loading, Notice, ProblemNotice } from './notice.tsx'
import { PaperHead } from './statement.tsx'
import { pageSizes } from './url-state.ts'
import { useAnswer, useLive } from './use-live.ts'

export function InvoiceList() {
  const { client, session, nav, words, format } = usePage()
  const { filters, page, pageSize } = nav.state
  const query = { ...filters, page, page_size: pageSize }
  const question = JSON.stringify(query)
  const { result, isCurrent, isBarred, problem, retry } = useLive<Answer>(
    `list ${session.customer} ${question}`,
    call => client.invoices.list(session.customer, query, call),
  )
  const etag = result?.etag ?? null
  // Read once the list is there, so that the first rows never wait for it, and again whenever the list's ETag changes.
  const sums = useAnswer(etag !== null && (call => client.summary(session.customer, call)), [etag, client])
  const summary = sums?.data ?? null
  const balance = useAnswer(etag !== null && (call => client.balance(session.customer, call)), [etag, client])
  const changed = useChanged(isCurrent ? result?.data : undefined, question)
  const hasFilters = Object.keys(filters).length > 0
  const clear = () => nav.go({ filters: {}, page: 1 })
  const answer = result?.data
  const isList = answer === undefined ? problem === null : !isBarred && (answer.total > 0 || hasFilters)

  return (
    <>
      {problem !== null && (
        <ProblemNotice problem={problem} retry={retry} hasContent={answer !== undefined} back={clear} />
      )}
      {isList && (
        <>
          <CustomerName invoices={answer?.invoices ?? []} />
          <Owed balance={balance?.data ?? null} />
          {summary === null ? <div class="card chart-room on-screen" /> : <Chart summary={summary} />}
          <Filters clear={clear} />
          {answer && result ? (
            <div class={`card ${isCurrent ? '' : 'stale'}`} aria-busy={!isCurrent}>
              {answer.total === 0 ? (
                <Notice title={words.noMatch} lead={words.noMatchLead}>
                  <Button text={words.clear} class="primary" onClick={clear} />
                </Notice>
              ) : (
                <>
                  <PrintHead answer={answer} />
                  <div class="bar row on-screen" tabIndex={-1}>
                    <p class="found strong" role="status">
                      {words.found(format.count(answer.total), answer.total)}
                    </p>
                    <Freshness syncedAt={result.syncedAt} changes={changed.changes} />
                  </div>
                  <InvoiceTable invoices={answer.invoices} changed={changed.ids} />
                  <Pager page={answer.page} pages={answer.total_pages} />
                </>
              )}
            </div>
          ) : (
            <Loading words={words} retry={retry} rows={pageSize} />
          )}
          {answer && answer.total > 0 && <DownloadMenu total={answer.total} />}
        </>
      )}
      {!isBarred && answer?.total === 0 && !hasFilters && (
        <Notice title={words.none} lead={words.noneLead}>
          <Button text={words.again} class="primary" onClick={retry} />
        </Notice>
      )}
    </>
  )
}

/** Stays while a filter finds nothing; an empty line while the list is awaited. */
function CustomerName({ invoices }: { invoices: readonly Invoice[] }) {
  const name = useRef('')
  name.current ||= invoices[0]?.display_name ?? ''
  return <p class="customer strong">{name.current || '\u00a0'}</p>
}

/** The screen has the page's own title and pager. */
function PrintHead({ answer }: { answer: Answer }) {
  const { words, format } = usePage()
  const { invoices, page, page_size, total } = answer
  const before = (page - 1) * page_size
  const found = words.found(format.count(total), total)
  return (
    <header class="on-paper">
      <h2>{words.history}</h2>
      <PaperHead invoice={invoices[0]} />
      <p>
        {invoices.length === total
          ? found
          : words.part(format.count(before + 1), format.count(before + invoices.length), found)}
      </p>
    </header>
  )
}

/** Ids of the invoices that changed while the same list was shown, and the number of such changes. */
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

/** What is to be paid in each currency, and credit beside it; an empty line while they are awaited. */
function Owed({ balance }: { balance: CustomerBalance | null }) {
  const { words, format } = usePage()
  const lines = balance?.currencies.flatMap(({ currency, remaining_cents, count, credit_cents }) => [
    ...(count > 0 ? [words.owed(format.amount(remaining_cents, currency), format.count(count), count)] : []),
    ...(credit_cents > 0 ? [words.credit(format.amount(credit_cents, currency))] : []),
  ]) ?? ['\u00a0']
  return (
    <div class="owed row">
      {(lines.length > 0 ? lines : [words.nothingOwed]).map(line => (
        <p key={line}>{line}</p>
      ))}
    </div>
  )
}

/** Steps from page to page, and the page size. */
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
