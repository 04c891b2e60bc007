/** The statement of account for printing: all entries of a period with a running balance, by currency. */
import { useEffect, useState } from 'preact/hooks'
import type { AccountStatement, Invoice, StatementEntry, StatementSum } from '../sdk/client.ts'
import { usePage } from './context.ts'
import { BackLink, Button, Heading } from './controls.tsx'
import { Notice, ProblemNotice } from './notice.tsx'
import { describeProblem, type Problem } from './problem.ts'
import { Cell, NumberCell, RowHead } from './table.tsx'

export function Statement() {
  const { nav, words, format } = usePage()
  const { read, total, account, problem, retry } = useAccount()
  return (
    <>
      <BackLink to={{ isStatement: false }} />
      {problem !== null && <ProblemNotice problem={problem} retry={retry} hasContent={false} />}
      {account === null && problem === null && (
        <Notice title={words.loading}>
          <progress value={read} max={total || 1} aria-label={words.loading} />
          <span>{words.progress(format.count(read), format.count(total))}</span>
          <Button text={words.cancel} onClick={() => nav.go({ isStatement: false })} />
        </Notice>
      )}
      {account !== null && <Paper account={account} />}
    </>
  )
}

function Paper({ account: { sums, entries, customer } }: { account: Account }) {
  const { words } = usePage()
  return (
    <article class="card statement">
      <header class="stack">
        <Heading rank={2}>{words.statementTitle}</Heading>
        <Button text={words.print} class="primary on-screen" onClick={() => print()} />
        <CustomerOfPaper invoice={customer} />
        <PeriodOfPaper />
      </header>
      {sums.length === 0 && <p class="quiet">{words.noEntries}</p>}
      {sums.map(sum => (
        <Ledger
          key={sum.currency}
          sum={sum}
          entries={entries.filter(each => each.currency === sum.currency)}
        />
      ))}
    </article>
  )
}

/** On paper, each page repeats the seller above the columns, because the seller is in the table's header. */
function Ledger({ sum, entries }: { sum: StatementSum; entries: readonly StatementEntry[] }) {
  const { words, format } = usePage()
  const { currency } = sum
  const amount = (cents: number) => (cents === 0 ? '' : format.amount(cents, currency))
  const balance = (cents: number) => <strong>{format.amount(cents, currency)}</strong>
  const { column } = words
  return (
    <table class="ledger" role="table" aria-label={words.ledgerOf(currency.toUpperCase())}>
      <thead role="rowgroup">
        <Seller />
        <tr role="row">
          {[column.issued, words.entry].map(text => (
            <th role="columnheader" scope="col" key={text}>
              {text}
            </th>
          ))}
          {[words.debit, words.creditColumn, words.balance].map(text => (
            <th role="columnheader" scope="col" key={text} class="number">
              {text}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        <tr role="row" class="edge">
          <Cell class="day" />
          <RowHead>{words.opening}</RowHead>
          <NumberCell label={words.debit} text="" />
          <NumberCell label={words.creditColumn} text="" />
          <Cell class="number" data-label={words.balance}>
            {balance(sum.opening_cents)}
          </Cell>
        </tr>
        {entries.map((entry, index) => (
          <tr role="row" key={index}>
            <Cell class="day">{format.day(entry.day)}</Cell>
            <RowHead>
              <EntryName entry={entry} />
            </RowHead>
            <NumberCell label={words.debit} text={amount(entry.debit_cents)} />
            <NumberCell label={words.creditColumn} text={amount(entry.credit_cents)} />
            <Cell class="number" data-label={words.balance}>
              {format.amount(entry.balance_cents, currency)}
            </Cell>
          </tr>
        ))}
        <tr role="row" class="edge">
          <Cell class="day" />
          <RowHead>{words.closing}</RowHead>
          <NumberCell label={words.debit} text={amount(sum.debit_cents)} />
          <NumberCell label={words.creditColumn} text={amount(sum.credit_cents)} />
          <Cell class="number" data-label={words.balance}>
            {balance(sum.closing_cents)}
          </Cell>
        </tr>
      </tbody>
    </table>
  )
}

/** Shows the certified number, or else the number of the entry's invoice. */
function EntryName({ entry: { type, number, invoice_number, proof } }: { entry: StatementEntry }) {
  const { words } = usePage()
  const about = number ?? invoice_number
  return (
    <>
      {words.entryName[type] ?? type} {about}{' '}
      {proof === 'sum' && <span class="other quiet">{words.bySum}</span>}
    </>
  )
}

function Seller() {
  const { brand, words } = usePage()
  const { name, taxId, address } = brand
  if (name === null && taxId === null && address === null) return null
  const parts = [name, taxId && `${words.taxId} ${taxId}`, address].filter(Boolean)
  return (
    <tr role="row" class="seller">
      <td role="cell" colSpan={5}>
        {parts.join(' · ')}
      </td>
    </tr>
  )
}

interface Account {
  sums: AccountStatement['currencies']
  entries: readonly StatementEntry[]
  /** An invoice with the customer's name and tax ID for the paper. */
  customer: Invoice | undefined
}

interface Reading {
  read: number
  total: number
  account: Account | null
  problem: Problem | null
}

/** Reads the entries once, because paper does not change. When the data changes between two pages, the reading starts again. */
function useAccount() {
  const { client, session, nav } = usePage()
  const { date_from: from, date_to: to } = nav.state.filters
  const [attempt, setAttempt] = useState(0)
  const [state, setState] = useState<Reading>({ read: 0, total: 0, account: null, problem: null })
  useEffect(() => {
    const stop = new AbortController()
    const { signal } = stop
    const readPage = async (page: number) => {
      const query = { from, to, page, page_size: pageSize }
      const { data } = await client.statement(session.customer, query, { signal })
      const read = Math.min(page * pageSize, data.total)
      setState({ read, total: data.total, account: null, problem: null })
      return data
    }
    const read = async () => {
      try {
        const { data } = await client.invoices.list(session.customer, { page_size: 1 }, { signal })
        const account = { ...(await readEntries(readPage)), customer: data.invoices[0] }
        setState(state => ({ ...state, account, problem: null }))
      } catch (error) {
        if (!signal.aborted) setState(state => ({ ...state, problem: describeProblem(error, session.token) }))
      }
    }
    void read()
    return () => stop.abort()
  }, [attempt])
  return { ...state, retry: () => setAttempt(count => count + 1) }
}

const pageSize = 200

async function readEntries(
  readPage: (page: number) => Promise<AccountStatement>,
): Promise<Omit<Account, 'customer'>> {
  const first = await readPage(1)
  const entries = [...first.entries]
  for (let page = 2; page <= first.total_pages; page++) {
    const next = await readPage(page)
    // The sums differ from those of the first page, so the data has changed.
    if (JSON.stringify(next.currencies) !== JSON.stringify(first.currencies)) return readEntries(readPage)
    entries.push(...next.entries)
  }
  return { sums: first.currencies, entries }
}

/** The header of a list on paper: customer, days, filters, and the current time. The customer's name comes from the newest invoice. */
export function PaperHead({ invoice }: { invoice: Invoice | undefined }) {
  const { nav, words } = usePage()
  const { status, ix_status, q } = nav.state.filters
  const others = [
    status && words.status[status],
    ix_status && (words.document[ix_status] ?? ix_status),
    q && `“${q}”`,
  ].filter(Boolean)
  return (
    <>
      <CustomerOfPaper invoice={invoice} />
      <PeriodOfPaper />
      {others.length > 0 && <p>{words.statementFilters(others.join(', '))}</p>}
    </>
  )
}

function CustomerOfPaper({ invoice }: { invoice: Invoice | undefined }) {
  const { words } = usePage()
  return (
    <p>
      <strong>{invoice?.display_name}</strong>
      {invoice?.customer_tax_id && (
        <span>
          {words.taxId} {invoice.customer_tax_id}
        </span>
      )}
    </p>
  )
}

function PeriodOfPaper() {
  const { nav, words, format } = usePage()
  const { date_from, date_to } = nav.state.filters
  return (
    <p>
      <span>
        {words.statementRange(date_from ? format.day(date_from) : null, date_to ? format.day(date_to) : null)}
      </span>
      <span class="quiet">{words.statementOf(format.moment(new Date()))}</span>
    </p>
  )
}
