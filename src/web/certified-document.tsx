/** The certified document of an invoice: printed number, ATCUD, QR code, and the documents about it. */
import { useEffect, useState } from 'preact/hooks'
import type { InvoiceDetail, InvoiceDocument } from '../client/client.ts'
import { usePage } from './context.ts'

export function CertifiedDocument({ invoice }: { invoice: InvoiceDetail }) {
  const { client, session, words, format } = usePage()
  const [document, setDocument] = useState<InvoiceDocument | null>(null)
  const [qr, setQr] = useState<string | null>(null)
  useEffect(() => {
    if (invoice.ix_id === null) return setDocument(null)
    const stop = new AbortController()
    // The rest of the invoice is there without it, and the next change starts this again.
    client.document.get(session.customer, invoice.id, { signal: stop.signal }).then(
      ({ data }) => setDocument(data),
      () => {},
    )
    return () => stop.abort()
  }, [invoice, client, session.customer])
  const hasQr = document !== null && document.qr_path !== null
  useEffect(() => {
    setQr(null)
    if (!hasQr) return
    const stop = new AbortController()
    client.document
      .qr(session.customer, invoice.id, { signal: stop.signal })
      .then(readDataUrl)
      .then(setQr, () => {})
    return () => stop.abort()
  }, [hasQr, invoice.id, client, session.customer])
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
function readDataUrl(image: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = reject
    reader.readAsDataURL(image)
  })
}
