/** The total of an invoice; struck through when it is cancelled. */
import type { Invoice } from '../client/client.ts'
import { usePage } from './context.ts'

export function InvoiceTotal(props: Pick<Invoice, 'status' | 'total_cents' | 'currency'>) {
  const { format } = usePage()
  const text = format.amount(props.total_cents, props.currency)
  return <span>{props.status === 'void' ? <s>{text}</s> : text}</span>
}
