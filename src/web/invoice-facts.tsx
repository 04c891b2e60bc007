/** Both states of an invoice, in words that a customer understands, and its total. */
import type { ComponentChildren } from 'preact'
import type { Invoice } from '../client/client.ts'
import { describeDocument } from '../invoice-words.ts'
import { usePage } from './context.ts'

type Tone = 'good' | 'wait' | 'bad' | 'none'

const paymentTones: Record<Invoice['status'], Tone> = {
  draft: 'none',
  open: 'wait',
  paid: 'good',
  void: 'none',
  uncollectible: 'bad',
}

const issuedStatuses = ['settled', 'final', 'sent']

const stateTones: Record<Invoice['ix_sync_state'], Tone> = {
  not_synced: 'none',
  creating: 'wait',
  synced: 'good',
  failed: 'bad',
  ignored: 'none',
}

type States = Pick<Invoice, 'status' | 'ix_sync_state' | 'ix_status'>

export function PaymentBadge({ status }: States) {
  const { words } = usePage()
  return <Badge tone={paymentTones[status]}>{words.status[status]}</Badge>
}

export function DocumentBadge(states: States) {
  const { words } = usePage()
  const { ix_sync_state, ix_status } = states
  const tone =
    ix_status === null ? stateTones[ix_sync_state] : issuedStatuses.includes(ix_status) ? 'good' : 'none'
  return <Badge tone={tone}>{describeDocument(states, words)}</Badge>
}

function Badge({ tone, children }: { tone: Tone; children: string }) {
  return <span class={`badge strong ${tone}`}>{children}</span>
}

/** Struck through when it is cancelled. */
export function InvoiceTotal(props: Pick<Invoice, 'status' | 'total_cents' | 'currency'>) {
  const { format } = usePage()
  const text = format.amount(props.total_cents, props.currency)
  return <span>{props.status === 'void' ? <s>{text}</s> : text}</span>
}

/** An entry of a `dl`. */
export function Fact(props: { name: string; class?: string; children: ComponentChildren }) {
  return (
    <div class={props.class}>
      <dt>{props.name}</dt>
      <dd>{props.children}</dd>
    </div>
  )
}
