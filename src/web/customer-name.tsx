import { useRef } from 'preact/hooks'
import type { Invoice } from '../client/client.ts'

/** Stays while a filter finds nothing; an empty line while the list is awaited. */
export function CustomerName({ invoices }: { invoices: readonly Invoice[] }) {
  const name = useRef('')
  name.current ||= invoices[0]?.display_name ?? ''
  return <p class="customer strong">{name.current || '\u00a0'}</p>
}
