/** Billed amounts by month: for each currency, a table drawn as bars. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Invoice } from '../client/client.ts'
import { Button } from './button.tsx'
import { usePage } from './context.ts'
import { addUp, type MonthTotals, monthsBetween } from './month-totals.ts'
import { Cell, RowHead, TableHead } from './table.tsx'

/** Invoices that are added up without a click: ten requests. */
const maxUnasked = 500

interface ChartProps {
  total: number
  /** Changes with any of the customer's invoices. */
  etag: string | null
  /** The rows shown; null while they are of another list. */
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
  // Once somebody asked for all, a change does not start it anew.
  const sums = useSums(total, isAll ? null : etag, rows, isAll ? Number.POSITIVE_INFINITY : maxUnasked)
  if (sums === null) return <div class="chart-room" />
  if (sums.totals.size === 0) return null
  const { seen, isDone, totals } = sums
  return (
    <section class="charts stack" aria-label={words.chart}>
      {[...totals].map(([currency, months]) => (
        <Bars key={currency} currency={currency} months={months} />
      ))}
      {isDone && seen < total && (
        <p class="quiet">
          {words.chartPart(format.count(seen), format.count(total))}{' '}
          <Button text={words.chartAll} class="link" onClick={() => setAll(true)} />
        </p>
      )}
      {!isDone && seen > maxUnasked && (
        <p class="quiet">{words.chartAdding(format.count(seen), format.count(total))}</p>
      )}
    </section>
  )
}

function Bars({ currency, months }: { currency: string; months: ReadonlyMap<string, number> }) {
  const { words, format } = usePage()
  const title = words.chartOf(currency.toUpperCase())
  const scroller = useRef<HTMLElement>(null)
  const all = monthsBetween([...months.keys()])
  const highest = Math.max(...months.values(), 1)
  const last = all.at(-1)
  // The newest months are shown first.
  useEffect(() => {
    const { current } = scroller
    if (current) current.scrollLeft = current.scrollWidth
  }, [all.length, last])
  return (
    <figure class="card">
      <figcaption>
        <strong>{title}</strong>
        <span class="quiet">{words.chartNote}</span>
      </figcaption>
      <section
        class="scroller"
        ref={scroller}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling part must be reached by the keyboard
        tabIndex={0}
        aria-label={title}
      >
        <table class="bars" role="table" aria-label={title}>
          <TableHead class="hidden" texts={[words.chartMonth, words.billed]} />
          <tbody role="rowgroup">
            {all.map(month => (
              <tr role="row" key={month}>
                <RowHead>
                  <span aria-hidden="true">
                    {format.month(month, 'short')}
                    <small>{month.endsWith('-01') || month === all[0] ? month.slice(0, 4) : '\u00a0'}</small>
                  </span>
                  <span class="hidden">{format.month(month)}</span>
                </RowHead>
                <Bar cents={months.get(month) ?? 0} currency={currency} highest={highest} />
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </figure>
  )
}

/** An attribute of the drawing, because the page's policy allows no inline style. */
const maxBarPx = 112

function Bar({ cents, currency, highest }: { cents: number; currency: string; highest: number }) {
  const { format } = usePage()
  const height = cents <= 0 ? 0 : Math.max(2, Math.round((cents / highest) * maxBarPx))
  return (
    <Cell title={format.amount(cents, currency)}>
      <span aria-hidden="true">{cents === 0 ? '' : format.brief(cents, currency)}</span>
      <svg height={height} aria-hidden="true" focusable="false">
        <rect width="100%" height="100%" />
      </svg>
      <span class="hidden">{format.amount(cents, currency)}</span>
    </Cell>
  )
}

/** Begins once the list is there, so that the first rows never wait for it. */
function useSums(total: number, etag: string | null, rows: readonly Invoice[] | null, limit: number) {
  const { client, session, nav } = usePage()
  const { filters } = nav.state
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
          if (seen.length > maxUnasked && seen.length % 500 === 0)
            setSums({ seen: seen.length, isDone: false, totals: addUp(seen) })
        }
        setSums({ seen: seen.length, isDone: true, totals: addUp(seen) })
      } catch {
        // The list shows what is wrong; the next change starts this again.
      }
    })()
    return () => stop.abort()
  }, [JSON.stringify(filters), etag, limit, rows === null])
  return sums
}
