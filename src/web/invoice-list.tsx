/** The list: chart, filters, rows, pages, downloads. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { InvoiceList as Answer, Invoice } from '../client/client.ts'
import { Button } from './button.tsx'
import { Chart } from './chart.tsx'
import { usePage } from './context.ts'
import { CustomerName } from './customer-name.tsx'
import { DownloadMenu } from './download-menu.tsx'
import { Filters } from './filters.tsx'
import { Freshness } from './freshness.tsx'
import { InvoiceTable } from './invoice-table.tsx'
import { Loading, Notice, ProblemNotice } from './notice.tsx'
import { Pager } from './pager.tsx'
import { listKey, listQuery } from './url-state.ts'
import { useLive } from './use-live.ts'

export function InvoiceList() {
  const { client, session, nav, words, format } = usePage()
  const query = listQuery(nav.state)
  const { result, isCurrent, problem, retry } = useLive<Answer>(listKey(session.customer, query), call =>
    client.invoices.list(session.customer, query, call),
  )
  const changed = useChanged(result?.data, JSON.stringify(query))
  const hasFilters = Object.keys(nav.state.filters).length > 0
  const clear = () => nav.go({ filters: {}, page: 1 })
  const answer = result?.data
  // Without access nothing is shown; any other problem may pass, and the last answer stays in sight.
  const isBarred = problem !== null && problem.retryAt === null

  return (
    <>
      {problem !== null && <ProblemNotice problem={problem} retry={retry} back={clear} />}
      {!isBarred && answer && result && (answer.total > 0 || hasFilters) && (
        <>
          <CustomerName invoices={answer.invoices} />
          <Chart total={answer.total} etag={result.etag} rows={isCurrent ? answer.invoices : null} />
          <Filters clear={clear} />
          <div class={`card ${isCurrent ? '' : 'stale'}`} aria-busy={!isCurrent}>
            {answer.total === 0 ? (
              <Notice title={words.noMatch} lead={words.noMatchLead}>
                <Button text={words.clear} class="primary" onClick={clear} />
              </Notice>
            ) : (
              <>
                <div class="bar row" tabIndex={-1}>
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
          {answer.total > 0 && <DownloadMenu total={answer.total} />}
        </>
      )}
      {!isBarred && answer?.total === 0 && !hasFilters && (
        <Notice title={words.none} lead={words.noneLead}>
          <Button text={words.again} class="primary" onClick={retry} />
        </Notice>
      )}
      {answer === undefined && problem === null && <Loading retry={retry} />}
    </>
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
