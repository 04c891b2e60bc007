/** One invoice: states, lines, totals, and both PDFs. */
import { useEffect, useRef } from 'preact/hooks'
import type { CallOptions, InvoiceDetail as Detail } from '../client/client.ts'
import { usePage } from './context.ts'
import { BackLink } from './controls.tsx'
import { Freshness } from './freshness.tsx'
import { DocumentBadge, Fact, InvoiceTotal, PaymentBadge } from './invoice-facts.tsx'
import { Lines } from './lines.tsx'
import { Loading, ProblemNotice } from './notice.tsx'
import { PayButton } from './pay-button.tsx'
import { PdfButton } from './pdf-button.tsx'
import { useAnswer, useLive } from './use-live.ts'

export function InvoiceDetail({ id }: { id: string }) {
  const { client, session, nav, words, format, opened } = usePage()
  const question = `invoice ${session.customer} ${id}`
  const { result, isCurrent, isBarred, problem, retry } = useLive<Detail>(question, call =>
    client.invoice.get(session.customer, id, call),
  )
  const heading = useRef<HTMLHeadingElement>(null)
  const invoice = isCurrent ? result?.data : undefined
  const isThere = invoice !== undefined
  // Keyboard and screen reader go on from here.
  useEffect(() => {
    opened.current = id
    if (isThere) heading.current?.focus()
  }, [isThere, id, opened])

  return (
    <>
      {session.invoice === null && <BackLink to={{ invoice: null }} />}
      {problem !== null && (
        <ProblemNotice
          problem={problem}
          retry={retry}
          hasContent={isThere}
          back={() => nav.go({ invoice: null })}
        />
      )}
      {!isThere && problem === null && <Loading words={words} retry={retry} />}
      {invoice && !isBarred && (
        <article class="card detail stack">
          <header class="stack">
            <p class="quiet">{words.column.number}</p>
            <h2 ref={heading} tabIndex={-1}>
              {invoice.number ?? words.noNumber}
            </h2>
            <p class="sum">
              <InvoiceTotal {...invoice} />
            </p>
            <dl>
              <Fact name={words.customer}>{invoice.display_name}</Fact>
              <Fact name={words.column.issued}>
                <time dateTime={invoice.issued_at}>{format.day(invoice.issued_at)}</time>
              </Fact>
              <Fact name={words.column.status}>
                <PaymentBadge {...invoice} />
                <PayButton invoice={invoice} />
              </Fact>
              <Fact name={words.column.document}>
                <DocumentBadge {...invoice} />
              </Fact>
            </dl>
          </header>
          <Lines invoice={invoice} />
          <section class="stack on-screen" aria-label={words.documents}>
            <h3>{words.documents}</h3>
            <CertifiedDocument invoice={invoice} />
            <div class="pdfs stack">
              <PdfButton invoice={invoice} kind="ix" />
              <PdfButton invoice={invoice} kind="payments" />
            </div>
          </section>
          <p class="on-paper">{words.statementOf(format.moment(new Date()))}</p>
          <Freshness syncedAt={result?.syncedAt ?? null} changes={0} />
        </article>
      )}
    </>
  )
}

/** The certified document: printed number, ATCUD, QR code, and the documents about it. */
function CertifiedDocument({ invoice }: { invoice: Detail }) {
  const { client, session, words, format } = usePage()
  const { customer } = session
  const { id } = invoice
  const hasDocument = invoice.ix_id !== null
  const answer = useAnswer(hasDocument && (call => client.document.get(customer, id, call)), [
    invoice,
    client,
  ])
  const document = answer?.data ?? null
  const qrPath = document?.qr_path ?? null
  const readQr = (call: CallOptions) => client.document.qr(customer, id, call).then(readDataUrl)
  const qr = useAnswer(qrPath !== null && readQr, [qrPath, client])
  if (document === null || document.number === null) return null

  const name = (type: string, number: string | null) => `${words.documentType[type] ?? type} ${number ?? ''}`
  return (
    <div class="certified row">
      <div class="stack">
        <p>
          <strong>{name(document.type, document.number)}</strong>
          {document.atcud !== null && <span>{` · ATCUD ${document.atcud}`}</span>}
        </p>
        {document.related?.map(({ id, type, number, date, total_cents, status }) => (
          <p class="quiet" key={id}>
            {[
              name(type, number),
              date && format.day(date),
              total_cents !== null && format.amount(total_cents, document.currency),
              status === 'canceled' && words.document.canceled,
            ]
              .filter(Boolean)
              .join(' · ')}
          </p>
        ))}
      </div>
      {qr !== null && <img class="qr" src={qr} alt={words.qr} />}
    </div>
  )
}

/** The page may show no image from elsewhere. */
async function readDataUrl(image: Blob): Promise<string> {
  const bytes = new Uint8Array(await image.arrayBuffer())
  return `data:${image.type};base64,${btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(''))}`
}
