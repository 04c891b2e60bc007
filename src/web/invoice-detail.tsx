/** Shows one invoice: state, amount due, lines, totals, taxes, and its documents. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { expansions } from '../domain/expanded.ts'
import type { CallOptions, InvoiceDetail as Detail, InvoiceDocument } from '../sdk/client.ts'
import { usePage } from './context.ts'
import { BackLink, Button, Heading } from './controls.tsx'
import { describeExemption } from './exemptions.ts'
import { Freshness } from './freshness.tsx'
import { Fact, InvoiceTotal, StateBadge } from './invoice-facts.tsx'
import { remainderOf } from './invoice-state.ts'
import { Lines } from './lines.tsx'
import { Loading, ProblemNotice } from './notice.tsx'
import { isPayable, PayButton } from './pay-button.tsx'
import { hasOtherPdf, InvoicePdf, PdfButton } from './pdf-button.tsx'
import { readQrCode } from './qr-code.ts'
import { nameDocument, RelatedDocuments } from './related-documents.tsx'
import { supportOf } from './support.ts'
import { useAnswer, useLive } from './use-live.ts'

export function InvoiceDetail({ id }: { id: string }) {
  const { client, session, nav, words, format, opened, canPay } = usePage()
  const question = `invoice ${session.customer} ${id}`
  const { result, isCurrent, isBarred, problem, retry } = useLive<Detail>(question, call =>
    client.invoice.get(session.customer, id, { ...call, expand: expansions }),
  )
  const heading = useRef<HTMLHeadingElement>(null)
  const invoice = isCurrent ? result?.data : undefined
  const isThere = invoice !== undefined
  const answer = useAnswer(
    invoice !== undefined &&
      invoice.ix_id !== null &&
      (call => client.document.get(session.customer, id, call)),
    [invoice, client],
  )
  const document = answer?.data ?? null
  // Moves the focus to the heading, so that keyboards and screen readers continue there.
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
            <Heading rank={2} inner={heading} tabIndex={-1}>
              {invoice.document?.number ?? invoice.number ?? words.noNumber}
            </Heading>
            <p class="sum">
              <InvoiceTotal {...invoice} />
            </p>
            <div class="row on-screen">
              <StateBadge invoice={invoice} />
              <PayButton invoice={invoice} />
              <InvoicePdf invoice={invoice} class={canPay && isPayable(invoice) ? '' : 'primary'} />
            </div>
            <Facts invoice={invoice} document={document} />
          </header>
          <Lines invoice={invoice} />
          <Taxes invoice={invoice} document={document} />
          <Documents invoice={invoice} document={document} />
          <Wrong invoice={invoice} />
          <p class="on-paper">{words.statementOf(format.moment(new Date()))}</p>
          <Freshness syncedAt={result?.syncedAt ?? null} changes={0} />
        </article>
      )}
    </>
  )
}

/** The facts that customers look for first: buyer, issue date, due date and paid amount. */
function Facts({ invoice, document }: { invoice: Detail; document: InvoiceDocument | null }) {
  const { words, format } = usePage()
  const { payment, currency, number } = invoice
  const certified = invoice.document ?? null
  const due = payment?.due_date ?? certified?.due_date ?? null
  const taxId = document?.buyer_tax_id ?? null
  const amount = (cents: number) => format.amount(cents, currency)
  return (
    <dl>
      <Fact name={words.customer}>{document?.buyer_name ?? invoice.display_name}</Fact>
      {taxId !== null && <Fact name={words.taxId}>{taxId}</Fact>}
      {certified?.number && number !== null && <Fact name={words.platformNumber}>{number}</Fact>}
      <Fact name={words.column.issued}>
        <time dateTime={invoice.issued_at}>{format.day(certified?.date ?? invoice.issued_at)}</time>
      </Fact>
      {due !== null && <Fact name={words.due}>{format.day(due)}</Fact>}
      {payment !== undefined && remainderOf(invoice) !== null && (
        <>
          <Fact name={words.paid}>{amount(payment.paid_cents)}</Fact>
          <Fact name={words.remaining}>{amount(payment.remaining_cents)}</Fact>
        </>
      )}
      {payment !== undefined && payment.credited_cents > 0 && (
        <Fact name={words.credited}>{amount(payment.credited_cents)}</Fact>
      )}
    </dl>
  )
}

/**
 * Shows taxes by rate, from the certified document or else from the payment platform. Shows nothing when the totals already contain the
 * only tax.
 */
function Taxes({ invoice, document }: { invoice: Detail; document: InvoiceDocument | null }) {
  const { words, format } = usePage()
  const { taxes, currency } = document?.taxes ? document : { ...invoice, taxes: invoice.taxes ?? null }
  const { exemption_code = null, retention_percent = null, retention_cents = null } = document ?? {}
  const isInTotals = taxes?.length === 1 && taxes[0]?.tax_cents === invoice.tax_cents
  const shown = isInTotals ? [] : (taxes ?? [])
  if (shown.length === 0 && exemption_code === null && !retention_cents) return null
  return (
    <section class="taxes stack small" aria-label={words.taxesByRate}>
      {shown.map(({ rate_percent, base_cents, tax_cents }) => (
        <p key={rate_percent}>
          {words.taxOfBase(
            rate_percent === null ? '?' : format.percent(rate_percent),
            base_cents === null ? '?' : format.amount(base_cents, currency),
            format.amount(tax_cents, currency),
          )}
        </p>
      ))}
      {exemption_code !== null && <p>{words.exempt(describeExemption(exemption_code))}</p>}
      {retention_percent !== null && !!retention_cents && (
        <p>{words.retention(format.percent(retention_percent), format.amount(retention_cents, currency))}</p>
      )}
    </section>
  )
}

/** Shows nothing while the invoice has no document. */
function Documents({ invoice, document }: { invoice: Detail; document: InvoiceDocument | null }) {
  const { words, downloads } = usePage()
  const hasPlatforms = hasOtherPdf(invoice, downloads)
  if (document === null && !hasPlatforms) return null
  return (
    <section class="stack" aria-label={words.documents}>
      <Heading rank={3}>{words.documents}</Heading>
      {document !== null && <CertifiedDocument invoice={invoice} document={document} />}
      {hasPlatforms && <PdfButton invoice={invoice} kind="payments" text={words.pdfPayments} />}
    </section>
  )
}

/** Shows the certified document: number, ATCUD, QR code, Multibanco payment details, and related documents. */
function CertifiedDocument({ invoice, document }: { invoice: Detail; document: InvoiceDocument }) {
  const { client, session, words, downloads } = usePage()
  const { qr_path: qrPath, atcud, multibanco } = document
  const readQr = (call: CallOptions) =>
    client.document.qr(session.customer, invoice.id, call).then(readQrCode)
  const qr = useAnswer(downloads.ix && qrPath !== null && readQr, [qrPath, client])
  if (document.number === null) return null
  return (
    <div class="certified row">
      <div class="stack">
        <p>
          <strong>{nameDocument(document, words)}</strong>{' '}
          {atcud !== null && <span class="atcud">ATCUD {atcud}</span>}
        </p>
        {multibanco !== null && invoice.status === 'open' && <MultibancoFacts {...multibanco} />}
        <RelatedDocuments invoice={invoice} document={document} />
      </div>
      {qr !== null && (
        <svg class="qr" role="img" aria-label={words.qr} viewBox={`0 0 ${qr.width} ${qr.height}`}>
          <path d={qr.path} />
        </svg>
      )}
    </div>
  )
}

function MultibancoFacts({ entity, reference }: { entity: string; reference: string }) {
  const { words } = usePage()
  const [isCopied, setCopied] = useState(false)
  const copy = () =>
    navigator.clipboard.writeText(reference).then(
      () => setCopied(true),
      () => {},
    )
  return (
    <dl class="multibanco row">
      <Fact name={words.entity}>{entity}</Fact>
      <Fact name={words.multibancoReference}>{reference.replace(/(\d{3})(?=\d)/g, '$1 ')}</Fact>
      <Button text={isCopied ? words.copied : words.copy} aria-label={words.copyReference} onClick={copy} />
    </dl>
  )
}

function Wrong({ invoice }: { invoice: Detail }) {
  const { words, brand } = usePage()
  const support = supportOf(brand, invoice.document?.number ?? invoice.number ?? invoice.id)
  if (support === null) return null
  return (
    <p class="wrong small on-screen">
      {words.wrong} <a href={support.href}>{support.text}</a>
    </p>
  )
}
