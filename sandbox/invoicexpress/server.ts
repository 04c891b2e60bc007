/** A local InvoiceXpress on its own port. It has the part of the API that a reader needs, and can fail on demand. */
import { createFaults, type DocumentFault, type DocumentRouteName } from '../faults.ts'
import { createRandom } from '../random.ts'
import { type Call, createRateLimit, type Serving, type ServingOptions, startServing } from '../serving.ts'
import { type Answer, jsonAnswer, SandboxError } from '../spoil.ts'
import type { DocumentAccount } from './account.ts'
import { type IxControlled, ixControls } from './control.ts'
import { createErrorWriter, notFound } from './errors.ts'
import type { IxPage } from './list.ts'
import { createPdfs } from './pdfs.ts'
import { type IxRoute, ixRoutes } from './routes.ts'
import { createSafts } from './saft.ts'

export interface InvoiceXpressOptions extends ServingOptions {
  documents: DocumentAccount
  /** The only accepted key. Default: `ix_test_sandbox`. */
  apiKey?: string
  /** Requests per minute before a 429. InvoiceXpress allows 780. Null means no limit. */
  ratePerMinute?: number | null
  /** Delay until lists show a change, in milliseconds. */
  lagMs?: number
  /** Number of requests for a PDF or a SAF-T file that are answered with 202. Infinity lasts until `finishPdf`. */
  pdfDelay?: number
  /** Time for which the address of a PDF or SAF-T file is valid, in milliseconds. */
  pdfLifetimeMs?: number
}

export interface InvoiceXpressSandbox extends Serving, IxControlled {}

export async function startInvoiceXpressSandbox(
  options: InvoiceXpressOptions,
): Promise<InvoiceXpressSandbox> {
  const { documents, apiKey = 'ix_test_sandbox', seed = 1, chaos = 0 } = options
  const { lagMs = 0, pdfDelay: delay = 1, pdfLifetimeMs: lifetimeMs = 60_000 } = options
  const faults = createFaults<DocumentFault, DocumentRouteName>(createRandom(seed ^ 0x2545f491))
  faults.setChaos(chaos)
  const pdfs = createPdfs(documents, createRandom(seed ^ 0x510e527f), { delay, lifetimeMs })
  const safts = createSafts(documents, createRandom(seed ^ 0x6a09e667), { delay, lifetimeMs })
  const world = { documents, pdfs, safts, address: '', lagMs }
  const isWithinRate = createRateLimit(options.ratePerMinute ?? null, 60_000)

  function answer({ url, route, fault }: Call<IxRoute>): Answer {
    const search = url.searchParams
    if (!route?.isOpen) checkKey(search.get('api_key'), apiKey)
    if (!isWithinRate()) throw new SandboxError(429, 'Too many requests.')
    if (route === undefined) throw notFound('resource')
    const page = Number(search.get('page') ?? 1)
    // With the fault `looping_page`, every request gets the first page.
    if (fault?.fault === 'looping_page') search.delete('page')
    // With the fault `repeating_pages`, the first two pages are answered in turn.
    if (fault?.fault === 'repeating_pages') search.set('page', String(2 - (Number(search.get('page')) % 2)))
    if (fault?.fault === 'endless_pages') search.set('page', '1')
    const [, ...parts] = route.path.exec(url.pathname) ?? []
    const answer = route.answer(world, search, parts)
    return fault === null ? answer : pretendMore(answer, fault.fault, page)
  }

  const service = {
    routes: ixRoutes,
    faults,
    controls: ixControls,
    controlled: () => sandbox,
    headers: () => ({ date: new Date(documents.clock * 1000).toUTCString() }),
    answer,
    writeError: createErrorWriter(),
    empty: {
      invoices: [],
      pagination: { total_entries: 0, per_page: 10, current_page: 1, total_pages: 1 },
    },
  }
  const serving = await startServing(service, options)
  world.address = serving.address
  const sandbox: InvoiceXpressSandbox = { ...serving, documents, faults, finishPdf: pdfs.finish }
  return sandbox
}

/** Makes a list claim to be the requested page with another page after it. With `endless_pages`, the documents of each page are new. */
function pretendMore(answer: Answer, fault: DocumentFault, page: number): Answer {
  if (!/^(repeating|endless)_pages$/.test(fault) || answer.status !== 200) return answer
  const { invoices, pagination } = JSON.parse(answer.body.toString()) as IxPage
  const shift = fault === 'endless_pages' ? page * 100_000_000 : 0
  const per_page = pagination.per_page
  const total_pages = fault === 'endless_pages' ? page + 1 : 1_000
  return jsonAnswer(200, {
    invoices: invoices.map(document => ({ ...document, id: document.id + shift })),
    pagination: { per_page, current_page: page, total_pages, total_entries: total_pages * per_page },
  })
}

function checkKey(key: string | null, expected: string): void {
  if (key === null || key === '') throw new SandboxError(401, 'The API key is missing.')
  if (key !== expected) throw new SandboxError(401, 'Incorrect API key.')
}
