/** Shows billed amounts by month, for one currency at a time. The chart is a table drawn as bars. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { CustomerSummary } from '../sdk/client.ts'
import { usePage } from './context.ts'
import { Button, Switch } from './controls.tsx'
import { billedByMonth, monthsBetween } from './month-totals.ts'
import { Cell, RowHead, TableHead } from './table.tsx'

/** With fewer months, the chart would show no more than the list. */
const fewestMonths = 3

export function Chart({ summary }: { summary: CustomerSummary }) {
  const { words, format } = usePage()
  const [chosen, setChosen] = useState('')
  // The currency with the most months comes first.
  const totals = [...billedByMonth(summary)]
    .filter(([, sums]) => monthsBetween([...sums.keys()]).length >= fewestMonths)
    .toSorted(([, a], [, b]) => b.size - a.size)
  const [currency, sums] = totals.find(([each]) => each === chosen) ?? totals[0] ?? ['', new Map()]
  const title = words.chartOf(currency.toUpperCase())
  const months = monthsBetween([...sums.keys()])
  const steps = useSteps(`${currency} ${months.length} ${months.at(-1)}`, months.length)
  const { scroller, isFirst, isLast, inSight, step } = steps
  if (totals.length === 0) return null
  const isYearShown = (month: string) =>
    month.endsWith('-01') || month === months[0] || month === months.at(-1)
  const scale = createScale(months.slice(...inSight).map(month => sums.get(month) ?? 0))
  return (
    <section class="charts stack on-screen" aria-label={words.chart}>
      <figure class="card">
        <figcaption class="row">
          <strong>{totals.length > 1 ? words.chart : title}</strong>
          <span class="note quiet">{words.chartNote}</span>
          {totals.length > 1 && (
            <Switch
              legend={words.currency}
              options={totals.map(([each]) => [each] as const)}
              value={currency}
              onChange={setChosen}
            />
          )}
          {!(isFirst && isLast) && (
            <span class="row">
              <Button text="‹" aria-label={words.earlier} disabled={isFirst} onClick={() => step(-1)} />
              <Button text="›" aria-label={words.later} disabled={isLast} onClick={() => step(1)} />
            </span>
          )}
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
              {months.map(month => (
                <tr role="row" key={month}>
                  <RowHead>
                    <span aria-hidden="true">
                      {format.month(month, 'short')}
                      <b>{isYearShown(month) ? month.slice(0, 4) : '\u00a0'}</b>
                    </span>
                    <span class="hidden">{format.month(month)}</span>
                  </RowHead>
                  <Bar cents={sums.get(month) ?? 0} currency={currency} scale={scale} />
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      </figure>
    </section>
  )
}

/**
 * Scrolls the chart by as many months as are visible, starting at the newest. `inSight` holds the first visible month, and the month after
 * the last visible one.
 */
function useSteps(content: string, months: number) {
  const scroller = useRef<HTMLElement>(null)
  const [isFirst, setFirst] = useState(true)
  const [isLast, setLast] = useState(true)
  const [inSight, setInSight] = useState<[from: number, to: number]>([0, months])
  // A layout effect runs before the browser paints, so the buttons do not move other content.
  useLayoutEffect(() => {
    const { current } = scroller
    if (current === null) return
    let isAtEnd = true
    let width = 0
    const measure = () => {
      // After a change of width, the ResizeObserver calls `fit`. `fit` then measures again.
      if (current.clientWidth !== width) return
      isAtEnd = current.scrollLeft + current.clientWidth > current.scrollWidth - 2
      setFirst(current.scrollLeft < 2)
      setLast(isAtEnd)
      const monthPx = current.scrollWidth / months
      const from = Math.round(current.scrollLeft / monthPx)
      const to = from + Math.round(current.clientWidth / monthPx)
      setInSight(known => (known[0] === from && known[1] === to ? known : [from, to]))
    }
    const fit = () => {
      width = current.clientWidth
      if (isAtEnd) current.scrollLeft = current.scrollWidth
      measure()
    }
    fit()
    const observer = new ResizeObserver(fit)
    observer.observe(current)
    current.addEventListener('scroll', measure)
    return () => {
      observer.disconnect()
      current.removeEventListener('scroll', measure)
    }
  }, [content])
  const step = (direction: number) =>
    scroller.current?.scrollBy({ left: direction * scroller.current.clientWidth })
  return { scroller, isFirst, isLast, inSight, step }
}

const chartPx = 131
/** Height of the amount above or below a bar. */
const labelPx = 18

/** Scales the bars to the visible amounts. Bars use SVG attributes, because the page's Content Security Policy forbids inline styles. */
function createScale(amounts: readonly number[]) {
  const highest = Math.max(...amounts, 0)
  const lowest = Math.min(...amounts, 0)
  const barsPx = chartPx - labelPx - (lowest < 0 ? labelPx : 1)
  const pxOf = (cents: number) => Math.round((cents / (highest - lowest || 1)) * barsPx)
  const zeroPx = labelPx + pxOf(highest)
  return {
    zeroPx,
    barOf(cents: number) {
      const height = Math.min(barsPx, Math.max(2, pxOf(Math.abs(cents))))
      return cents > 0
        ? { y: zeroPx - height, height, textY: zeroPx - height - 5 }
        : { y: zeroPx, height, textY: zeroPx + height + 13 }
    },
  }
}

type Scale = ReturnType<typeof createScale>

function Bar({ cents, currency, scale }: { cents: number; currency: string; scale: Scale }) {
  const { format } = usePage()
  const { y, height, textY } = scale.barOf(cents)
  return (
    <Cell title={format.amount(cents, currency)}>
      <svg height={chartPx} aria-hidden="true" focusable="false">
        <rect class="zero" y={scale.zeroPx} width="100%" height="1" />
        {cents !== 0 && (
          <>
            <rect class="amount" x="20%" y={y} width="60%" height={height} rx="3" />
            <text x="50%" y={textY}>
              {format.brief(cents, currency)}
            </text>
          </>
        )}
      </svg>
      <span class="hidden">{format.amount(cents, currency)}</span>
    </Cell>
  )
}
