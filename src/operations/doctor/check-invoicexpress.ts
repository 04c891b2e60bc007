/** Checks whether InvoiceXpress accepts the key, what the key may read, and whether PDFs come from an allowed origin. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Document } from '../../domain/document.ts'
import type { Pace } from '../../sources/calls/paced-calls.ts'
import {
  type Answer,
  createClient,
  type InvoiceXpressOptions,
  isInvoiceXpressOwn,
} from '../../sources/invoicexpress/client.ts'
import { createDocumentSource, writeQuery } from '../../sources/invoicexpress/document-source.ts'
import { pdfGuardFor } from '../../sources/invoicexpress/invoicing-system.ts'
import { readObject, readPdfUrl } from '../../sources/invoicexpress/read-answer.ts'
import { isAllowed } from '../../sources/pdf/allowed-origins.ts'
import type { DocumentSource } from '../../sources/source.ts'
import { checkClock, readDateHeader } from './check-clock.ts'
import { answerLimitMs, type Check, explain, type Report, within } from './findings.ts'

export const quickPace: Pace = { perSecond: 8, attempts: 1, patienceMs: answerLimitMs }

/** InvoiceXpress creates a PDF when it is first requested, so the request is repeated a few times. */
const pdfTries = 5
const pdfPauseMs = 700

/** Returns whether documents can be read. */
export async function checkInvoiceXpress(report: Report, options: InvoiceXpressOptions): Promise<boolean> {
  const quick = { ...options, timeoutMs: answerLimitMs }
  const ask = createClient(quick)
  const key = report('InvoiceXpress: key')
  const before = Date.now()
  key.begin()
  const oneDocument = writeQuery({}, 1, 1)
  const asking = within(answerLimitMs + 1_000, signal => ask('/invoices.json', oneDocument, signal))
  const answer = await asking.catch(explain)
  const clock = typeof answer === 'string' ? null : readDateHeader(answer.date, before, Date.now())
  const mayRead = checkKey(key, answer, options)
  if (mayRead) {
    const source = createDocumentSource(quick, quickPace)
    const document = await checkDocuments(report('InvoiceXpress: read documents'), source)
    const pdf = report('InvoiceXpress: PDF origin')
    if (document === null) pdf.skip('there is no issued document to check with')
    else {
      await checkClient(report('InvoiceXpress: read clients'), source, document)
      await checkPdf(pdf, document, options, ask)
    }
  }
  checkClock(report, 'InvoiceXpress', clock, !isInvoiceXpressOwn(options.base))
  return mayRead
}

function checkKey(check: Check, answer: Answer | string, { base, account }: InvoiceXpressOptions): boolean {
  const whose = account === null ? 'at INVOICEXPRESS_API_BASE' : `of the account ${account}`
  if (typeof answer === 'string')
    check.fail(
      answer,
      isInvoiceXpressOwn(base)
        ? 'Check INVOICEXPRESS_ACCOUNT. Also check that this machine reaches the address of the account.'
        : 'Check INVOICEXPRESS_API_BASE, and check that the sandbox is running.',
    )
  else if (answer.status === 401 || answer.status === 403)
    check.fail(
      `InvoiceXpress refused the key ${whose}`,
      'Copy the key again from InvoiceXpress (Account, Integrations, API). Check that it is the key of INVOICEXPRESS_ACCOUNT.',
    )
  else
    try {
      readObject(answer)
      check.ok(`accepted ${whose}`)
      return true
    } catch (error) {
      check.fail(explain(error), 'Check INVOICEXPRESS_ACCOUNT, and try again.')
    }
  return false
}

/** Lists issued documents and fetches one of them. Returns null when no document exists or it cannot be read. */
async function checkDocuments(check: Check, source: DocumentSource): Promise<Document | null> {
  const found = await check.attempt('Try again. If it fails again, report it.', async () => {
    const { documents } = await source.listDocuments({ statuses: ['sent', 'settled'] }, 1)
    const [first] = documents
    return { first, again: first === undefined ? null : await source.fetchDocument(first.id, first.type) }
  })
  if (found === null) return null
  if (found.first === undefined) check.ok('allowed, but there are no issued documents')
  else if (found.again !== null) check.ok('allowed')
  else
    check.warn(
      `document ${found.first.id} is listed, but cannot be read on its own`,
      'Try again. If it fails again, the key may lack a permission.',
    )
  return found.again
}

async function checkClient(check: Check, source: DocumentSource, { client_id }: Document): Promise<void> {
  if (client_id === null) return check.skip('the sampled document names no client')
  const next =
    'Give the key permission to read clients. Without it, tax IDs are not compared and references by {number} find no document.'
  const found = await check.attempt(next, async () => ({ client: await source.fetchClient(client_id) }))
  if (found?.client === null) check.warn('the client of a document is not found', next)
  else if (found !== null) check.ok('allowed')
}

/** Only the origin of a PDF's address is shown, because the whole address gives access to the PDF. */
async function checkPdf(
  check: Check,
  { id }: Document,
  options: InvoiceXpressOptions,
  ask: ReturnType<typeof createClient>,
) {
  const next = 'Downloads of PDFs would fail too. Try again. If it fails again, report it.'
  const found = await check.attempt(next, async signal => {
    for (let remaining = pdfTries; remaining > 0 && !signal.aborted; remaining--) {
      const answer = await ask(`/api/pdf/${id}.json`)
      if (answer.status !== 202) return new URL(readPdfUrl(answer))
      await sleep(pdfPauseMs)
    }
    return 'making'
  })
  if (found === null) return
  if (found === 'making') return check.skip(`the PDF of document ${id} is still being made`, 'Try again.')
  const { origins } = pdfGuardFor(options)
  if (isAllowed(found, origins)) return check.ok(`${found.origin} is allowed`)
  check.fail(
    `${found.origin} is not one of ${origins.join(', ')}, so downloads of PDFs are refused`,
    `If this address belongs to InvoiceXpress, set INVOICEXPRESS_PDF_ORIGINS=${[...(options.pdfOrigins ?? origins), found.origin].join(',')}`,
  )
}
