/** InvoiceXpress' key: whether it is good, what it may read, and whether PDFs come from where they may. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Document } from '../document.ts'
import {
  type Answer,
  createClient,
  type InvoiceXpressOptions,
  isInvoiceXpressOwn,
} from '../invoicexpress/client.ts'
import { createDocumentSource } from '../invoicexpress/document-source.ts'
import { pdfGuardFor } from '../invoicexpress/invoicing-system.ts'
import { readObject } from '../invoicexpress/read-answer.ts'
import { isAllowed } from '../pdf/allowed-origins.ts'
import type { DocumentSource } from '../sources.ts'
import type { Pace } from '../upstream/paced-calls.ts'
import { type ClockReading, readDateHeader } from './check-clock.ts'
import { answerLimitMs, attempt, checkLimitMs, explain, type Reporter, within } from './findings.ts'

export const quickPace: Pace = { perSecond: 8, attempts: 1, patienceMs: answerLimitMs }

/** How often a PDF that is being made is asked for, and how many milliseconds lie between. */
const pdfTries = 5
const pdfPause = 700

const oneDocument = [
  ['page', '1'],
  ['per_page', '1'],
] as const

export interface InvoiceXpressFound {
  mayRead: boolean
  clock: ClockReading | null
}

export async function checkInvoiceXpress(
  report: Reporter,
  options: InvoiceXpressOptions,
): Promise<InvoiceXpressFound> {
  const quick = { ...options, timeoutMs: answerLimitMs }
  const ask = createClient(quick)
  const source = createDocumentSource(quick, quickPace)
  const before = Date.now()
  report.begin('InvoiceXpress: key')
  const answer = await within(answerLimitMs + 1_000, signal =>
    ask('/invoices.json', oneDocument, signal),
  ).catch(explain)
  const clock = typeof answer === 'string' ? null : readDateHeader(answer.date, before, Date.now())
  if (!checkKey(report, answer, options)) return { mayRead: false, clock }

  const document = await checkDocuments(report, source)
  if (document === null) {
    report.skip('InvoiceXpress: PDF origin', 'there is no issued document to ask for')
    return { mayRead: true, clock }
  }
  await checkClient(report, source, document)
  await checkPdf(report, document, options, path => ask(path))
  return { mayRead: true, clock }
}

function checkKey(
  report: Reporter,
  answer: Answer | string,
  { base, account }: InvoiceXpressOptions,
): boolean {
  const check = 'InvoiceXpress: key'
  const whose = account === null ? 'at INVOICEXPRESS_API_BASE' : `of the account ${account}`
  if (typeof answer === 'string') {
    const next = isInvoiceXpressOwn(base)
      ? 'Check INVOICEXPRESS_ACCOUNT, and that this machine reaches its address.'
      : 'Check INVOICEXPRESS_API_BASE, and that the sandbox runs.'
    report.fail(check, answer, next)
    return false
  }
  if (answer.status === 401 || answer.status === 403) {
    report.fail(
      check,
      `InvoiceXpress refused the key ${whose}`,
      'Copy it again from the account: Account, Integrations, API. Check that it is the key of INVOICEXPRESS_ACCOUNT.',
    )
    return false
  }
  try {
    readObject(answer)
  } catch (error) {
    report.fail(check, explain(error), 'Check INVOICEXPRESS_ACCOUNT, and try again.')
    return false
  }
  report.ok(check, `accepted ${whose}`)
  return true
}

/** Lists issued documents and asks for one of them; null when there is none, or it cannot be read. */
async function checkDocuments(report: Reporter, source: DocumentSource): Promise<Document | null> {
  const check = 'InvoiceXpress: read documents'
  const found = await attempt(report, check, 'Try again; if it fails again, report it.', async () => {
    const { documents } = await source.listDocuments({ statuses: ['sent', 'settled'] }, 1)
    const [first] = documents
    return { first, again: first === undefined ? null : await source.fetchDocument(first.id, first.type) }
  })
  if (found === null) return null
  if (found.first === undefined) report.ok(check, 'allowed; there are no issued documents')
  else if (found.again === null)
    report.warn(
      check,
      `document ${found.first.id} is listed, but cannot be read on its own`,
      'The key may lack a permission; or the document was deleted just now: try again.',
    )
  else report.ok(check, 'allowed')
  return found.again
}

async function checkClient(report: Reporter, source: DocumentSource, { client_id }: Document): Promise<void> {
  const check = 'InvoiceXpress: read clients'
  if (client_id === null) return report.skip(check, 'the sampled document names no client')
  const next = 'Only the comparison of tax IDs needs it. Give the key the right to read clients.'
  const found = await attempt(report, check, next, async () => ({
    client: await source.fetchClient(client_id),
  }))
  if (found === null) return
  if (found.client === null) report.warn(check, 'the client of a document is not found', next)
  else report.ok(check, 'allowed')
}

/** Of the address only the origin is shown: whoever has the whole of it has the PDF. */
async function checkPdf(
  report: Reporter,
  { id }: Document,
  options: InvoiceXpressOptions,
  ask: (path: string) => Promise<Answer>,
): Promise<void> {
  const check = 'InvoiceXpress: PDF origin'
  const found = await attempt(
    report,
    check,
    'Downloads would fail too. Try again; if it fails again, report it.',
    async signal => {
      for (let left = pdfTries; left > 0 && !signal.aborted; left--) {
        const answer = await ask(`/api/pdf/${id}.json`)
        if (answer.status !== 202) return readPdfUrl(answer)
        await sleep(pdfPause)
      }
      return 'making'
    },
    checkLimitMs,
  )
  if (found === null) return
  if (found === 'making')
    return report.skip(check, `the PDF of document ${id} is still being made`, 'Try again.')
  const { origins } = pdfGuardFor(options)
  if (isAllowed(found, origins)) report.ok(check, `${found.origin} is allowed`)
  else
    report.fail(
      check,
      `${found.origin} is not among ${origins.join(', ')}: downloads are refused`,
      `If this address belongs to InvoiceXpress, set INVOICEXPRESS_PDF_ORIGINS=${[...(options.pdfOrigins ?? origins), found.origin].join(',')}`,
    )
}

function readPdfUrl(answer: Answer): URL {
  const { output } = readObject(answer) as { output?: { pdfUrl?: unknown } }
  const url = URL.parse(String(output?.pdfUrl))
  if (url === null) throw new TypeError('no address')
  return url
}
