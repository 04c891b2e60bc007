/** The requests of the latency table, for one customer. */
import type { Ask } from '../load/ask.ts'
import type { LoadRequest } from '../load/load.ts'
import { listPath } from '../servers/service.ts'

export interface Case extends LoadRequest {
  name: string
  status: number
}

export interface Variant {
  customer: string
  /** From 0 to 1: which page around the middle, which month, which invoice. Large customers too are asked variously. */
  part: number
}

interface Found {
  id: string
  number: string | null
  customer_name: string
}

/** Asks the service first what there is: how many pages, which ids, which ETag. */
export async function makeCases(
  ask: Ask,
  headers: LoadRequest['headers'],
  { customer, part }: Variant,
): Promise<Case[]> {
  const list = listPath(customer)
  const read = async (query: string) => {
    let answer = await ask({ path: list + query, headers })
    // A store that is too slow for its own time limit says 503; only the measured requests may fail for good.
    for (let again = 0; answer.status === 503 && again < 5; again++)
      answer = await ask({ path: list + query, headers })
    if (answer.status !== 200) throw new Error(`${list}${query}: ${answer.status} ${answer.text}`)
    return { ...JSON.parse(answer.text), etag: answer.etag }
  }
  const near = (pages: number) => Math.max(1, Math.round(pages * (0.4 + 0.2 * part)))
  const { total_pages, etag } = await read('')
  const paid = await read('?status=paid')
  const middle = await read(`?page=${near(total_pages)}`)
  const invoices: Found[] = middle.invoices
  const numbered = invoices.filter(({ number }) => number !== null)
  const chosen = numbered[Math.floor(part * numbered.length)] as Found

  const month = String(1 + Math.floor(part * 12)).padStart(2, '0')
  const query = (name: string, text: string): Case => ({ name, path: list + text, headers, status: 200 })
  const search = (name: string, q: string) => query(name, `?q=${encodeURIComponent(q)}`)
  return [
    query('page 1', ''),
    query('middle page', `?page=${near(total_pages)}`),
    query('last page', `?page=${total_pages}`),
    query('status=paid', '?status=paid'),
    query('status=paid, ix_status=settled', '?status=paid&ix_status=settled'),
    query('one month', `?date_from=2025-${month}-01&date_to=2025-${month}-28`),
    query('one year', '?date_from=2025-01-01&date_to=2025-12-31'),
    query('status=paid, middle page', `?status=paid&page=${near(paid.total_pages)}`),
    search('q: one hit', chosen.number ?? ''),
    search('q: every invoice', 'example'),
    search('q: two words', chosen.customer_name),
    { ...query('detail', ''), path: `/api/v1/client/${customer}/invoice/${chosen.id}` },
    { ...query('304', ''), headers: { ...headers, 'if-none-match': etag }, status: 304 },
    { ...query('`/live`, which reads nothing', ''), path: '/live' },
  ]
}
