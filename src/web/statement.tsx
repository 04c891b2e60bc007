/** All that the filters find on paper, with totals for each currency. */
import { useEffect, useState } from 'preact/hooks'
import type { Invoice, InvoiceFilters } from '../client/client.ts'
import { describeDocument } from './badge.tsx'
import { usePage } from './context.ts'
import { Link } from './link.tsx'
import { isBilled } from './month-totals.ts'
import { Notice, ProblemNotice } from './notice.tsx'
import { describeProblem, type Problem } from './problem.ts'
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
      <p class="back">
        <Link to={{ isStatement: false }}>
          <span aria-hidden="true">← </span>
          {words.back}
        </Link>
      </p>
      {problem !== null && <ProblemNotice problem={problem} retry={retry} />}
      {!isDone && problem === null && (
        <Notice title={words.loading}>
          <p class="actions">
            <progress value={invoices.length} max={total || 1} aria-label={words.loading} />
            <span>{words.progress(format.count(invoices.length), format.count(total))}</span>
            <button type="button" onClick={() => nav.go({ isStatement: false })}>
              {words.cancel}
            </button>
          </p>
        </Notice>
      )}
      {isDone && <Paper invoices={invoices} filters={nav.place.filters} />}
    </>
  )
}

function Paper({ invoices, filters }: { invoices: readonly Invoice[]; filters: InvoiceFilters }) {
  const { words, format } = usePage()
  const [newest] = invoices
  const { date_from, date_to } = filters
  const others = describeFilters(filters, words)
  return (
    <article class="card statement">
      <header>
        <h2>{words.statementTitle}</h2>
        <button type="button" class="primary" onClick={() => print()}>
          {words.print}
        </button>
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
        <thead>
          <tr>
            <th scope="col">{words.column.number}</th>
            <th scope="col">{words.column.issued}</th>
            <th scope="col">{words.column.status}</th>
            <th scope="col">{words.column.document}</th>
            <th scope="col" class="number">
              {words.column.total}
            </th>
          </tr>
        </thead>
        <tbody>
          {invoices.map(invoice => (
            <tr key={invoice.id}>
              <th scope="row">{invoice.number ?? words.noNumber}</th>
              <td>{format.day(invoice.issued_at)}</td>
              <td>{words.status[invoice.status]}</td>
              <td>{describeDocument(invoice, words)}</td>
              <td class="number">{format.amount(invoice.total_cents, invoice.currency)}</td>
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
  const sum = (currency: string, only?: Invoice['status']) =>
    format.amount(
      billed.reduce(
        (total, invoice) =>
          invoice.currency === currency && invoice.status === (only ?? invoice.status)
            ? total + invoice.total_cents
            : total,
        0,
      ),
      currency,
    )
  return (
    <table class="by-currency">
      <caption>
        {words.totals} <span class="quiet">{words.chartNote}</span>
      </caption>
      <thead>
        <tr>
          <th scope="col">{words.currency}</th>
          <th scope="col" class="number">
            {words.paid}
          </th>
          <th scope="col" class="number">
            {words.due}
          </th>
          <th scope="col" class="number">
            {words.billed}
          </th>
        </tr>
      </thead>
      <tbody>
        {currencies.map(currency => (
          <tr key={currency}>
            <th scope="row">{currency.toUpperCase()}</th>
            <td class="number">{sum(currency, 'paid')}</td>
            <td class="number">{sum(currency, 'open')}</td>
            <td class="number">
              <strong>{sum(currency)}</strong>
            </td>
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

/** On paper nothing moves, so it is read once; what changed meanwhile makes it begin again. */
function useAll(): [State, () => void] {
  const { client, session, nav } = usePage()
  const { filters } = nav.place
  const [attempt, setAttempt] = useState(0)
  const [state, setState] = useState<State>({ invoices: [], total: 0, isDone: false, problem: null })
  // The filters by their content.
  useEffect(() => {
    const stop = new AbortController()
    const read = async () => {
      const walk = client.invoices.all(session.customer, filters, { signal: stop.signal })
      try {
        // A customer's invoices change now and then, not all the time: the third picture is taken as it is.
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
