/** The certified document of an invoice: printed number, ATCUD, QR code, and the documents about it. */
import type { CallOptions, InvoiceDetail } from '../client/client.ts'
import { usePage } from './context.ts'
import { useAnswer } from './use-live.ts'

export function CertifiedDocument({ invoice }: { invoice: InvoiceDetail }) {
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
