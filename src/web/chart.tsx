/** What was billed month by month: a table that is drawn as bars, one for each currency. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Invoice } from '../client/client.ts'
import { usePage } from './context.ts'
import { addUp, type MonthTotals, monthsBetween } from './month-totals.ts'

/** How many are added up without asking: ten requests. */
const unasked = 500

interface ChartProps {
  total: number
  /** Another one when anything changed. */
  etag: string | null
  /** The rows in sight, or null when they are of another list. */
  rows: readonly Invoice[] | null
}

interface Sums {
  seen: number
  isDone: boolean
  totals: MonthTotals
}

export function Chart({ total, etag, rows }: ChartProps) {
  const { words, format } = usePage()
  const [isAll, setAll] = useState(false)
  // All of many are added up when somebody asks, not with every change.
  const sums = useSums(total, isAll ? null : etag, rows, isAll ? Number.POSITIVE_INFINITY : unasked)
  if (sums === null) return <div class="chart-room" />
  if (sums.totals.size === 0) return null
  const { seen, isDone, totals } = sums
  return (
    <section class="charts" aria-label={words.chart}>
      {[...totals].map(([currency, months]) => (
        <Bars key={currency} currency={currency} months={months} />
      ))}
      {isDone && seen < total && (
        <p class="quiet">
          {words.chartPart(format.count(seen), format.count(total))}{' '}
          <button type="button" class="link" onClick={() => setAll(true)}>
            {words.chartAll}
          </button>
        </p>
      )}
      {!isDone && seen > unasked && (
        <p class="quiet">{words.chartAdding(format.count(seen), format.count(total))}</p>
      )}
    </section>
  )
}

function Bars({ currency, months }: { currency: string; months: ReadonlyMap<string, number> }) {
  const { words, format } = usePage()
  const scroller = useRef<HTMLElement>(null)
  const all = monthsBetween([...months.keys()])
  const highest = Math.max(...months.values(), 1)
  const last = all.at(-1)
  // The newest months are those that are looked at first.
  useEffect(() => {
    const { current } = scroller
    if (current) current.scrollLeft = current.scrollWidth
  }, [all.length, last])
  return (
    <figure class="card">
      <figcaption>
        <strong>{words.chartOf(currency.toUpperCase())}</strong>
        <span class="quiet">{words.chartNote}</span>
      </figcaption>
      <section
        class="scroller"
        ref={scroller}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
        tabIndex={0}
        aria-label={words.chartOf(currency.toUpperCase())}
      >
        <table class="bars" role="table" aria-label={words.chartOf(currency.toUpperCase())}>
          <thead role="rowgroup" class="hidden">
            <tr role="row">
              <th role="columnheader" scope="col">
                {words.chartMonth}
              </th>
              <th role="columnheader" scope="col">
                {words.chartTotal}
              </th>
            </tr>
          </thead>
          <tbody role="rowgroup">
            {all.map(month => (
              <tr role="row" key={month}>
                <th role="rowheader" scope="row">
                  <span aria-hidden="true">
                    {format.month(month, 'short')}
                    <small>{month.endsWith('-01') || month === all[0] ? month.slice(0, 4) : '\u00a0'}</small>
                  </span>
                  <span class="hidden">{format.month(month)}</span>
                </th>
                <Bar cents={months.get(month) ?? 0} currency={currency} highest={highest} />
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </figure>
  )
}

/** In pixels; an attribute of the drawing, because no style stands in the page. */
const highestBar = 112

function Bar({ cents, currency, highest }: { cents: number; currency: string; highest: number }) {
  const { format } = usePage()
  const height = cents <= 0 ? 0 : Math.max(2, Math.round((cents / highest) * highestBar))
  return (
    <td role="cell" title={format.amount(cents, currency)}>
      <span aria-hidden="true">{cents === 0 ? '' : format.brief(cents, currency)}</span>
      <svg height={height} aria-hidden="true" focusable="false">
        <rect width="100%" height="100%" />
      </svg>
      <span class="hidden">{format.amount(cents, currency)}</span>
    </td>
  )
}

/** After the list is there, so that nothing keeps its first rows waiting. */
function useSums(total: number, etag: string | null, rows: readonly Invoice[] | null, limit: number) {
  const { client, session, nav } = usePage()
  const { filters } = nav.place
  const [sums, setSums] = useState<Sums | null>(null)
  // The filters by their content; the rows go with the ETag.
  useEffect(() => {
    if (rows === null) return
    if (rows.length === total) return setSums({ seen: total, isDone: true, totals: addUp(rows) })
    const stop = new AbortController()
    void (async () => {
      const seen: Invoice[] = []
      try {
        for await (const invoice of client.invoices.all(session.customer, filters, { signal: stop.signal })) {
          seen.push(invoice)
          if (seen.length >= limit) break
          if (seen.length > unasked && seen.length % 500 === 0)
            setSums({ seen: seen.length, isDone: false, totals: addUp(seen) })
        }
        setSums({ seen: seen.length, isDone: true, totals: addUp(seen) })
      } catch {
        // The list above it says what is wrong, and goes on; so does this, with the next change.
      }
    })()
    return () => stop.abort()
  }, [JSON.stringify(filters), etag, limit, rows === null])
  return sums
}
