/** A menu in the row of an invoice, with further PDFs: the payment platform's PDF, credit notes and receipts. */
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { DocumentAbout, ListedInvoice } from '../sdk/client.ts'
import { usePage } from './context.ts'
import { hasOtherPdf, PdfButton } from './pdf-button.tsx'
import { nameDocument } from './related-documents.tsx'
import { useAnswer } from './use-live.ts'

export function RowMenu({ invoice }: { invoice: ListedInvoice }) {
  const { client, session, words, downloads } = usePage()
  const id = useId()
  const button = useRef<HTMLButtonElement>(null)
  const list = useRef<HTMLDivElement>(null)
  const [isOpen, setOpen] = useState(false)
  const hasDocument = downloads.ix && invoice.ix_id !== null
  const hasPlatforms = hasOtherPdf(invoice, downloads)
  useClosedByScroll(isOpen, button.current, list.current)
  const answer = useAnswer(
    isOpen && hasDocument && (call => client.document.get(session.customer, invoice.id, call)),
    [isOpen, invoice, client],
  )
  if (!hasDocument && !hasPlatforms) return null
  const number = invoice.document?.number ?? invoice.number ?? invoice.id
  // A draft has no PDF yet.
  const related = (answer?.data.related ?? []).filter(({ status }) => status !== 'draft')
  return (
    <>
      <button
        type="button"
        class="more"
        ref={button}
        popovertarget={id}
        aria-label={words.moreOf(number)}
        aria-haspopup="dialog"
        aria-expanded={isOpen}
      >
        {words.more}
      </button>
      <div
        id={id}
        popover="auto"
        class="menu stack"
        ref={list}
        role="dialog"
        aria-label={words.moreOf(number)}
        onBeforeToggle={event => {
          const isOpening = event.newState === 'open'
          if (isOpening && button.current && list.current) placeBeside(button.current, list.current)
          setOpen(isOpening)
        }}
      >
        {hasPlatforms && (
          <PdfButton invoice={invoice} kind="payments" text={words.pdfPayments} name={number} />
        )}
        {related.map(about => (
          <RelatedPdf key={about.id} invoice={invoice} about={about} />
        ))}
        {isOpen && hasDocument && answer === null && <span class="quiet">{words.waiting}</span>}
      </div>
    </>
  )
}

function RelatedPdf({ invoice, about }: { invoice: ListedInvoice; about: DocumentAbout }) {
  const { words } = usePage()
  return <PdfButton invoice={invoice} kind={{ related: about.id }} text={nameDocument(about, words)} />
}

/** Places the list below the button, or above it when there is too little room below. */
function placeBeside(button: HTMLElement, list: HTMLElement): void {
  const { top, bottom, right } = button.getBoundingClientRect()
  const isBelow = bottom < innerHeight - 200
  Object.assign(list.style, {
    insetInlineStart: 'auto',
    insetInlineEnd: `${Math.max(8, document.documentElement.clientWidth - right)}px`,
    insetBlockStart: isBelow ? `${bottom + 4}px` : 'auto',
    insetBlockEnd: isBelow ? 'auto' : `${innerHeight - top + 4}px`,
  })
}

/** Closes the list when its button moves. Browsers may report a scroll from before the opening, so the button's position is compared. */
function useClosedByScroll(isOpen: boolean, button: HTMLElement | null, list: HTMLElement | null): void {
  useEffect(() => {
    if (!isOpen || button === null || list === null) return
    const { top } = button.getBoundingClientRect()
    const closed = new AbortController()
    const closeIfMoved = () => button.getBoundingClientRect().top !== top && list.hidePopover()
    addEventListener('scroll', closeIfMoved, { capture: true, signal: closed.signal })
    return () => closed.abort()
  }, [isOpen, button, list])
}
