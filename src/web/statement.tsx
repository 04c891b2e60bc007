/** The statement: all invoices that match the filters, for paper, with totals for each currency. */
import { useEffect, useState } from 'preact/hooks'
import type { Invoice, InvoiceFilters } from '../client/client.ts'
import { describeDocument } from '../invoice-words.ts'
import { Button } from './button.tsx'
import { usePage } from './context.ts'
import { BackLink } from './link.tsx'
import { isBilled } from './month-totals.ts'
import { Notice, ProblemNotice } from './notice.tsx'
import { describeProblem, type Problem } from './problem.ts'
import { Cell, NumberCell, RowHead, TableHead } from './table.tsx'
import type { Words } from './words/words.ts'

interface State {
  invoices: readonly Invoice[]
  total: number
  isDone: boolean
  problem: Problem | null
}

export function Statement() {
  const { nav, words, format } = usePage()
  const [state, retry] = useAll()
  const { invoices, total, isDone, problem } = state
  return (
    <>
      <BackLink to={{ isStatement: false }} />
      {problem !== null && <ProblemNotice problem={problem} retry={retry} />}
      {!isDone && problem === null && (
        <Notice title={words.loading}>
          <progress value={invoices.length} max={total || 1} aria-label={words.loading} />
          <span>{words.progress(format.count(invoices.length), format.count(total))}</span>
          <Button text={words.cancel} onClick={() => nav.go({ isStatement: false })} />
        </Notice>
      )}
      {isDone && <Paper invoices={invoices} filters={nav.state.filters} />}
    </>
  )
}

function Paper({ invoices, filters }: { invoices: readonly Invoice[]; filters: InvoiceFilters }) {
  const { words, format } = usePage()
  const [newest] = invoices
  const { date_from, date_to } = filters
  const { column } = words
  const others = describeFilters(filters, words)
  return (
    <article class="card statement">
      <header class="stack">
        <h2>{words.statementTitle}</h2>
        <Button text={words.print} class="primary" onClick={() => print()} />
        <p>
          <strong>{newest?.display_name}</strong>
          {newest?.customer_tax_id && (
            <span>
              {words.taxId} {newest.customer_tax_id}
            </span>
          )}
        </p>
        <p>
          <span>
            {words.statementRange(
              date_from ? format.day(date_from) : null,
              date_to ? format.day(date_to) : null,
            )}
          </span>
          {others !== '' && <span>{words.statementFilters(others)}</span>}
          <span class="quiet">{words.statementOf(format.moment(new Date()))}</span>
        </p>
      </header>
      <table>
        <TableHead
          texts={[column.number, column.issued, column.status, column.document]}
          numbers={[column.total]}
        />
        <tbody>
          {invoices.map(invoice => (
            <tr key={invoice.id}>
              <RowHead>{invoice.number ?? words.noNumber}</RowHead>
              <Cell>{format.day(invoice.issued_at)}</Cell>
              <Cell>{words.status[invoice.status]}</Cell>
              <Cell>{describeDocument(invoice, words)}</Cell>
              <NumberCell text={format.amount(invoice.total_cents, invoice.currency)} />
            </tr>
          ))}
        </tbody>
      </table>
      <Totals invoices={invoices} />
    </article>
  )
}

function Totals({ invoices }: { invoices: readonly Invoice[] }) {
  const { words, format } = usePage()
  const billed = invoices.filter(isBilled)
  const currencies = [...new Set(billed.map(({ currency }) => currency))].toSorted()
  const sum = (currency: string, only?: Invoice['status']) => {
    const counted = billed.filter(
      invoice => invoice.currency === currency && (only === undefined || invoice.status === only),
    )
    return format.amount(
      counted.reduce((total, { total_cents }) => total + total_cents, 0),
      currency,
    )
  }
  return (
    <table class="by-currency">
      <caption>
        {words.totals} <span class="quiet">{words.chartNote}</span>
      </caption>
      <TableHead texts={[words.currency]} numbers={[words.paid, words.status.open, words.billed]} />
      <tbody>
        {currencies.map(currency => (
          <tr key={currency}>
            <RowHead>{currency.toUpperCase()}</RowHead>
            <NumberCell text={sum(currency, 'paid')} />
            <NumberCell text={sum(currency, 'open')} />
            <Cell class="number">
              <strong>{sum(currency)}</strong>
            </Cell>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function describeFilters({ status, ix_status, q }: InvoiceFilters, words: Words): string {
  return [
    status && words.status[status],
    ix_status && (words.document[ix_status] ?? ix_status),
    q && `“${q}”`,
  ]
    .filter(Boolean)
    .join(', ')
}

/** Paper does not change, so the invoices are read once; a change meanwhile makes the reading begin again. */
function useAll(): [State, () => void] {
  const { client, session, nav } = usePage()
  const { filters } = nav.state
  const [attempt, setAttempt] = useState(0)
  const [state, setState] = useState<State>({ invoices: [], total: 0, isDone: false, problem: null })
  // The filters by their content.
  useEffect(() => {
    const stop = new AbortController()
    const read = async () => {
      const walk = client.invoices.all(session.customer, filters, { signal: stop.signal })
      try {
        // A customer's invoices change now and then, not all the time: the third reading is shown in any case.
        for (let tries = 1; ; tries++) {
          const invoices: Invoice[] = []
          for await (const invoice of walk) {
            invoices.push(invoice)
            if (invoices.length % 50 === 1)
              setState({ invoices: [...invoices], total: walk.total ?? 0, isDone: false, problem: null })
          }
          if (walk.changed && tries < 3) continue
          return setState({ invoices, total: invoices.length, isDone: true, problem: null })
        }
      } catch (error) {
        if (!stop.signal.aborted)
          setState(state => ({ ...state, problem: describeProblem(error, session.token) }))
      }
    }
    void read()
    return () => stop.abort()
  }, [JSON.stringify(filters), attempt])
  return [state, () => setAttempt(count => count + 1)]
}
