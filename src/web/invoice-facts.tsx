/** Shows the state, the total and other facts of an invoice. */
import type { ComponentChildren } from 'preact'
import { dayOf } from '../domain/calendar.ts'
import type { Invoice, ListedInvoice } from '../sdk/client.ts'
import { usePage } from './context.ts'
import type { Format } from './format.ts'
import { type InvoiceState, stateOf } from './invoice-state.ts'
import type { Words } from './words.ts'

type Tone = 'good' | 'wait' | 'bad' | 'none'

const tones: Record<InvoiceState['kind'], Tone> = {
  draft: 'none',
  void: 'none',
  credited: 'none',
  paid: 'good',
  nothingToPay: 'good',
  toPay: 'wait',
  overdue: 'bad',
  uncollectible: 'bad',
}

export function StateBadge({
  invoice,
}: {
  invoice: Pick<ListedInvoice, 'status' | 'total_cents' | 'payment'>
}) {
  const { words, format } = usePage()
  const state = stateOf(invoice, dayOf(Date.now()))
  return <span class={`badge strong ${tones[state.kind]}`}>{describeState(state, words, format)}</span>
}

function describeState(state: InvoiceState, words: Words, format: Format): string {
  if (state.kind === 'overdue') return words.overdueBy(state.days)
  if (state.kind === 'toPay')
    return state.due === null ? words.state.toPay : words.toPayUntil(format.dueDay(state.due))
  return words.state[state.kind]
}

/** Shows the total. The total of a void invoice is struck through. */
export function InvoiceTotal(props: Pick<Invoice, 'status' | 'total_cents' | 'currency'>) {
  const { format } = usePage()
  const text = format.amount(props.total_cents, props.currency)
  return <span>{props.status === 'void' ? <s>{text}</s> : text}</span>
}

export function Fact(props: { name: string; class?: string; children: ComponentChildren }) {
  return (
    <div class={props.class}>
      <dt>{props.name}</dt>
      <dd>{props.children}</dd>
    </div>
  )
}
