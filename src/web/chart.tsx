/** Billed amounts by month: for each currency, a table drawn as bars. */
import { useEffect, useRef } from 'preact/hooks'
import type { CustomerSummary } from '../client/client.ts'
import { usePage } from './context.ts'
import { billedByMonth, monthsBetween } from './month-totals.ts'
import { Cell, RowHead, TableHead } from './table.tsx'

export function Chart({ summary }: { summary: CustomerSummary }) {
  const { words } = usePage()
  const totals = billedByMonth(summary)
  if (totals.size === 0) return null
  return (
    <section class="charts stack" aria-label={words.chart}>
      {[...totals].map(([currency, months]) => (
        <Bars key={currency} currency={currency} months={months} />
      ))}
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
