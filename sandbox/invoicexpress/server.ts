/** A local InvoiceXpress on a port of its own: the part of its API that a reader needs, and a way to make it fail. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { answerControl, controlPath } from '../control.ts'
import { createFaults, type DocumentFault, type DocumentRouteName, type Faults } from '../faults.ts'
import { createRandom } from '../random.ts'
import { createTurns, startServing } from '../serving.ts'
import { type Answer, jsonAnswer } from '../spoil.ts'
import type { DocumentAccount } from './account.ts'
import { ixControls } from './control.ts'
import { createErrorWriter, IxError, notFound } from './errors.ts'
import type { IxPage } from './list.ts'
import { createPdfs } from './pdfs.ts'
import { ixRoutes } from './routes.ts'

export interface InvoiceXpressOptions {
  documents: DocumentAccount
  /** 0 or nothing takes a free one. */
  port?: number
  host?: string
  /** The only key that is accepted; `ix_test_sandbox` when not given. */
  apiKey?: string
  /** Requests a minute before 429, 780 at the real one; null for as many as come. */
  ratePerMinute?: number | null
  /** How long a change takes to be seen in lists, in milliseconds. */
  lag?: number
  /** How often a PDF is still being made when it is asked for. With Infinity until `finishPdf`. */
  pdfDelay?: number
  /** How long the address of a PDF is good, in milliseconds. */
  pdfLifetime?: number
  /** How long an answer takes, in milliseconds. */
  latency?: number
  /** The share of requests that a random fault spoils, from 0 to 1. */
  chaos?: number
  seed?: number
}

export interface InvoiceXpressSandbox {
  /** As in http://127.0.0.1:4012. */
  address: string
  documents: DocumentAccount
  faults: Faults<DocumentFault, DocumentRouteName>
  /** Requests served so far, by route name; `redirected` counts who followed a redirect. */
  requests: Map<string, number>
  /** The document's PDF is made from now on; every one when no document is given. */
  finishPdf(id?: number): void
  close(): Promise<void>
}

export async function startInvoiceXpressSandbox(
  options: InvoiceXpressOptions,
): Promise<InvoiceXpressSandbox> {
  const { documents, host = '127.0.0.1', port = 0, apiKey = 'ix_test_sandbox', seed = 1, chaos = 0 } = options
  const { lag = 0, latency = 0, pdfDelay: delay = 1, pdfLifetime: lifetime = 60_000 } = options
  const faults = createFaults<DocumentFault, DocumentRouteName>(createRandom(seed ^ 0x2545f491))
  faults.setChaos(chaos)
  const pdfs = createPdfs(documents, createRandom(seed ^ 0x510e527f), { delay, lifetime })
  const world = { documents, pdfs, address: '', lag }
  const hasTurn = createTurns(options.ratePerMinute ?? null, 60_000)
  const writeError = createErrorWriter()

  function attempt(make: () => Answer): Answer {
    try {
      return make()
    } catch (error) {
      const { status, message } = error instanceof IxError ? error : { status: 500, message: String(error) }
      return jsonAnswer(status, writeError(status, message))
    }
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader('date', new Date(documents.clock * 1000).toUTCString())
    const method = request.method ?? 'GET'
    const url = new URL(request.url ?? '/', 'http://sandbox')
    const { pathname: path, searchParams: search } = url
    if (path.startsWith(controlPath))
      return serving.send(response, await answerControl(ixControls, sandbox, method, url))
    const route = method === 'GET' ? ixRoutes.find(route => route.path.test(path)) : undefined
    if (route !== undefined) serving.count(route.name)
    const fault = route === undefined ? null : faults.take(route.name)
    const asked = new URLSearchParams(search)
    const answer = attempt(() => {
      if (!route?.isOpen) checkKey(search.get('api_key'), apiKey)
      if (!hasTurn()) throw new IxError(429, 'Too many requests.')
      if (route === undefined) throw notFound('resource')
      // The same page for ever: the first one.
      if (fault?.fault === 'looping_page') search.delete('page')
      // The first two pages by turns.
      if (fault?.fault === 'repeating_pages') search.set('page', String(2 - (Number(search.get('page')) % 2)))
      if (fault?.fault === 'endless_pages') search.set('page', '1')
      const [, ...parts] = route.path.exec(path) ?? []
      const answer = route.answer(world, search, parts)
      return fault === null ? answer : pretendMore(answer, fault.fault, Number(asked.get('page') ?? 1))
    })
    if (latency > 0) await sleep(latency)
    await serving.send(response, answer, fault === null ? undefined : { fault, path, writeError })
  }

  const empty = {
    invoices: [],
    pagination: { total_entries: 0, per_page: 10, current_page: 1, total_pages: 1 },
  }
  const serving = await startServing({ host, port, empty, handle })
  world.address = serving.address
  const sandbox: InvoiceXpressSandbox = {
    address: serving.address,
    documents,
    faults,
    requests: serving.requests,
    finishPdf: pdfs.finish,
    close: serving.close,
  }
  return sandbox
}

/** A list that says it is on the page that was asked for, with another one behind it; `endless_pages` of new documents. */
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
  if (key === null || key === '') throw new IxError(401, 'The API key is missing.')
  if (key !== expected) throw new IxError(401, 'Incorrect API key.')
}
