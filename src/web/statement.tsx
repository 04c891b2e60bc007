/** The statement: all invoices that match the filters, for paper, with totals for each currency. */
import { useEffect, useState } from 'preact/hooks'
import type { Invoice } from '../client/client.ts'
import { describeDocument } from '../invoice-words.ts'
import { usePage } from './context.ts'
import { BackLink, Button } from './controls.tsx'
import { InvoiceTotal } from './invoice-facts.tsx'
import { isBilled } from './month-totals.ts'
import { Notice, ProblemNotice } from './notice.tsx'
import { describeProblem, type Problem } from './problem.ts'
import { Cell, NumberCell, RowHead, TableHead } from './table.tsx'

export function Statement() {
  const { nav, words, format } = usePage()
  const { invoices, total, isDone, problem, retry } = useAll()
  return (
    <>
      <BackLink to={{ isStatement: false }} />
      {problem !== null && <ProblemNotice problem={problem} retry={retry} hasContent={false} />}
      {!isDone && problem === null && (
        <Notice title={words.loading}>
          <progress value={invoices.length} max={total || 1} aria-label={words.loading} />
          <span>{words.progress(format.count(invoices.length), format.count(total))}</span>
          <Button text={words.cancel} onClick={() => nav.go({ isStatement: false })} />
        </Notice>
      )}
      {isDone && <Paper invoices={invoices} />}
    </>
  )
}

function Paper({ invoices }: { invoices: readonly Invoice[] }) {
  const { words, format } = usePage()
  const { column } = words
  return (
    <article class="card statement">
      <header class="stack">
        <h2>{words.statementTitle}</h2>
        <Button text={words.print} class="primary" onClick={() => print()} />
        <PaperHead invoice={invoices[0]} />
      </header>
      <table class="ledger" role="table" aria-label={words.statementTitle}>
        <TableHead
          texts={[column.number, column.issued, column.status, column.document]}
          numbers={[words.totalWithTax]}
        />
        <tbody role="rowgroup">
          {invoices.map(invoice => (
            <tr role="row" key={invoice.id}>
              <RowHead>{invoice.number ?? words.noNumber}</RowHead>
              <Cell class="day">{format.day(invoice.issued_at)}</Cell>
              <Cell class="payment">{words.status[invoice.status]}</Cell>
              <Cell class="document">{describeDocument(invoice, words)}</Cell>
              <Cell class="number">
                <InvoiceTotal {...invoice} />
              </Cell>
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
  const sum = (currency: string, centsOf: (invoice: Invoice) => number) => {
    const counted = billed.filter(invoice => invoice.currency === currency)
    return format.amount(
      counted.reduce((total, invoice) => total + centsOf(invoice), 0),
      currency,
    )
  }
  const only = (wanted: Invoice['status']) => (invoice: Invoice) =>
    invoice.status === wanted ? invoice.total_cents : 0
  const includesTax = words.taxIncluded(null)
  return (
    <table class="by-currency" role="table">
      <caption>
        {words.totals} <span class="quiet">{words.chartNote}</span>
      </caption>
      <TableHead
        texts={[words.currency]}
        numbers={[words.paid, words.status.open, words.billed, includesTax]}
      />
      <tbody role="rowgroup">
        {currencies.map(currency => (
          <tr role="row" key={currency}>
            <RowHead>{currency.toUpperCase()}</RowHead>
            <NumberCell label={words.paid} text={sum(currency, only('paid'))} />
            <NumberCell label={words.status.open} text={sum(currency, only('open'))} />
            <Cell class="number" data-label={words.billed}>
              <strong>{sum(currency, ({ total_cents }) => total_cents)}</strong>
            </Cell>
            <NumberCell label={includesTax} text={sum(currency, ({ tax_cents }) => tax_cents)} />
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** Paper does not change, so the invoices are read once; a change meanwhile makes the reading begin again. */
function useAll() {
  const { client, session, nav } = usePage()
  const { filters } = nav.state
  const [attempt, setAttempt] = useState(0)
  const [state, setState] = useState({
    invoices: [] as readonly Invoice[],
    total: 0,
    isDone: false,
    problem: null as Problem | null,
  })
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
  }, [attempt])
  return { ...state, retry: () => setAttempt(count => count + 1) }
}

/** The head of a list on paper: customer, days, filters, and the moment. The names of the newest invoice count. */
export function PaperHead({ invoice }: { invoice: Invoice | undefined }) {
  const { nav, words, format } = usePage()
  const { date_from, date_to, status, ix_status, q } = nav.state.filters
  const others = [
    status && words.status[status],
    ix_status && (words.document[ix_status] ?? ix_status),
    q && `“${q}”`,
  ].filter(Boolean)
  return (
    <>
      <p>
        <strong>{invoice?.display_name}</strong>
        {invoice?.customer_tax_id && (
          <span>
            {words.taxId} {invoice.customer_tax_id}
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
        {others.length > 0 && <span>{words.statementFilters(others.join(', '))}</span>}
        <span class="quiet">{words.statementOf(format.moment(new Date()))}</span>
      </p>
    </>
  )
}
