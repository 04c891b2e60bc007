import { useRef } from 'preact/hooks'
import type { Invoice } from '../client/client.ts'

/** Stays while a filter finds nothing. */
export function CustomerName({ invoices }: { invoices: readonly Invoice[] }) {
  const name = useRef('')
  name.current ||= invoices[0]?.display_name ?? ''
  return name.current === '' ? null : <p class="customer strong">{name.current}</p>
}
