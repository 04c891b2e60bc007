/** Shows what the customer owes: the sum with its due day, the button to pay, and the open invoices, earliest due first. */
import { useState } from 'preact/hooks'
import type { CustomerBalance } from '../sdk/client.ts'
import { usePage } from './context.ts'
import { Button, Link } from './controls.tsx'
import { type Owed, owedOf } from './owed.ts'
import { PayButton } from './pay-button.tsx'

/** Shows nothing when the balance could not be read. */
export function OwedSummary({ balance }: { balance: CustomerBalance | null }) {
  const { words } = usePage()
  if (balance === null) return null
  const currencies = owedOf(balance)
  const owing = currencies.filter(({ cents }) => cents > 0)
  return (
    <section class="owed stack" aria-label={words.owed}>
      {owing.map(owed => (
        <OwedOfCurrency key={owed.currency} owed={owed} />
      ))}
      {owing.length === 0 && <p class="quiet">{words.nothingOwed}</p>}
      {currencies
        .filter(({ creditCents }) => creditCents > 0)
        .map(owed => (
          <Credit key={owed.currency} {...owed} />
        ))}
    </section>
  )
}

function Credit({ creditCents, currency }: Owed) {
  const { words, format } = usePage()
  return <p>{words.credit(format.amount(creditCents, currency))}</p>
}

function OwedOfCurrency({ owed }: { owed: Owed }) {
  const { words, format } = usePage()
  const { currency, cents, count, invoices } = owed
  const [first] = invoices
  return (
    <div class="card owed-sum stack">
      <div class="row">
        <p class="stack">
          <span class="quiet">{count > 1 ? words.owedIn(format.count(count)) : words.owed}</span>
          <strong class="sum">{format.amount(cents, currency)}</strong>
          <span class={count === 1 ? '' : 'due-of-sum'}>
            <DueText {...owed} />
          </span>
        </p>
        {count === 1 && first && <PayButton invoice={first} />}
      </div>
      {count > 1 && <OpenInvoices owed={owed} />}
    </div>
  )
}

function DueText({ daysOverdue, nextDue }: Pick<Owed, 'daysOverdue' | 'nextDue'>) {
  const { words, format } = usePage()
  if (daysOverdue > 0) return <span class="error strong">{words.overdueBy(daysOverdue)}</span>
  return nextDue === null ? null : <span>{words.until(format.dueDay(nextDue))}</span>
}

/** Shows the first open invoices. A button shows the others. */
function OpenInvoices({ owed: { invoices, count, currency } }: { owed: Owed }) {
  const { words, format } = usePage()
  const [isWhole, setWhole] = useState(false)
  return (
    <>
      <ol class={`open-invoices ${isWhole ? 'whole' : ''}`}>
        {invoices.map(invoice => (
          <li class="row" key={invoice.id}>
            <span class="stack">
              <Link to={{ invoice: invoice.id }} class="strong">
                {invoice.document_number ?? invoice.number ?? words.noNumber}
              </Link>
              <span class="small">
                <DueText daysOverdue={invoice.days_overdue} nextDue={invoice.due_date} />
              </span>
            </span>
            <span class="number">{format.amount(invoice.remaining_cents, currency)}</span>
            <PayButton invoice={invoice} />
          </li>
        ))}
      </ol>
      {count > 1 && (
        <Button
          class="link all-open"
          text={isWhole ? words.fewer : words.allOpen(format.count(count))}
          aria-expanded={isWhole}
          onClick={() => setWhole(!isWhole)}
        />
      )}
      {isWhole && count > invoices.length && <p class="quiet">{words.moreOpen(count - invoices.length)}</p>}
    </>
  )
}
