/** How the servers beside the service start and stop. */
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The questions of the lists that are compared. */
export type Question = '' | '?page=2' | '?status=paid'

/** What the services and the peer are asked as well: a search. */
export type ServiceQuestion = Question | '?q=lda'

/** Serves on a free port, says which, and ends with a signal. */
export function serve(
  answer: (customerId: string, question: Question, response: ServerResponse) => void,
): Server {
  const server = createServer({ keepAliveTimeout: 72_000 }, (request, response) => {
    // The path is /api/v1/client/<customerId>/invoices.
    const [, , , , customerId = '', rest = ''] = (request.url as string).split('/', 6)
    answer(customerId, rest.slice('invoices'.length) as Question, response)
  })
  server.listen(0, '127.0.0.1', () => sayWhere((server.address() as AddressInfo).port))
  return server
}

export function sayWhere(port: number): void {
  process.stdout.write(`listening at http://127.0.0.1:${port}\n`)
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(0))
}

export function send(response: ServerResponse, body: string | Buffer): void {
  response.writeHead(200, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
  })
  response.end(body)
}

/** The answer of every server around the rows: a page of 10. */
export function writePage(summaries: string, total: number, question: Question): string {
  return `{"invoices":[${summaries}],"page":${question === '?page=2' ? 2 : 1},"page_size":10,"total":${total},"total_pages":${Math.ceil(total / 10)},"source":"synchronized_records"}`
}
