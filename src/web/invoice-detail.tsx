/** One invoice: states, lines, totals, and both PDFs. */
import { useEffect, useRef } from 'preact/hooks'
import type { InvoiceDetail as Detail } from '../client/client.ts'
import { DocumentBadge, PaymentBadge } from './badge.tsx'
import { usePage } from './context.ts'
import { Freshness } from './freshness.tsx'
import { Lines } from './lines.tsx'
import { Link } from './link.tsx'
import { Loading, ProblemNotice } from './notice.tsx'
import { PdfButton } from './pdf-button.tsx'
import { useLive } from './use-live.ts'

export function InvoiceDetail({ id }: { id: string }) {
  const { client, session, nav, words, format, opened } = usePage()
  const { result, isCurrent, problem, retry } = useLive<Detail>(`invoice ${session.customer} ${id}`, call =>
    client.invoice.get(session.customer, id, call),
  )
  const heading = useRef<HTMLHeadingElement>(null)
  const invoice = isCurrent ? result?.data : undefined
  const isThere = invoice !== undefined
  // Who opened it with the keyboard, or listens, goes on from here.
  useEffect(() => {
    opened.current = id
    if (isThere) heading.current?.focus()
  }, [isThere, id, opened])

  const isBarred = problem !== null && problem.retryAt === null
  return (
    <>
      {session.invoice === null && (
        <p class="back">
          <Link to={{ invoice: null }}>
            <span aria-hidden="true">← </span>
            {words.back}
          </Link>
        </p>
      )}
      {problem !== null && (
        <ProblemNotice problem={problem} retry={retry} back={() => nav.go({ invoice: null })} />
      )}
      {!isThere && problem === null && <Loading retry={retry} />}
      {invoice && !isBarred && (
        <article class="card detail">
          <header>
            <p class="quiet">{words.invoice}</p>
            <h2 ref={heading} tabIndex={-1}>
              {invoice.number ?? words.noNumber}
            </h2>
            <p class="sum">{format.amount(invoice.total_cents, invoice.currency)}</p>
            <dl>
              <div>
                <dt>{words.customer}</dt>
                <dd>{invoice.display_name}</dd>
              </div>
              <div>
                <dt>{words.issuedOn}</dt>
                <dd>
                  <time dateTime={invoice.issued_at}>{format.day(invoice.issued_at)}</time>
                </dd>
              </div>
              <div>
                <dt>{words.column.status}</dt>
                <dd>
                  <PaymentBadge {...invoice} />
                </dd>
              </div>
              <div>
                <dt>{words.column.document}</dt>
                <dd>
                  <DocumentBadge {...invoice} />
                </dd>
              </div>
            </dl>
          </header>
          <Lines invoice={invoice} />
          <h3>{words.documents}</h3>
          <div class="pdfs">
            <PdfButton invoice={invoice} kind="ix" />
            <PdfButton invoice={invoice} kind="payments" />
          </div>
          <Freshness syncedAt={result?.syncedAt ?? null} changes={0} />
        </article>
      )}
    </>
  )
}
