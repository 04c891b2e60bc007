/** What the list is narrowed down to. Every choice is in the address at once. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { InvoiceFilters } from '../client/client.ts'
import { invoiceStatuses } from '../invoice.ts'
import { usePage } from './context.ts'

/** Those that an invoice's document can have; what the address names besides is offered too. */
const documentStatuses = ['draft', 'final', 'settled', 'canceled', 'second_copy']

/** Somebody who types is done when nothing came for this long. */
const typingMs = 350

export function Filters({ clear }: { clear(): void }) {
  const { nav, words } = usePage()
  const { filters } = nav.place
  const set = (change: InvoiceFilters) => {
    const next = Object.fromEntries(Object.entries({ ...filters, ...change }).filter(([, value]) => value))
    nav.go({ filters: next, page: 1 })
  }
  const { ix_status, date_from, date_to } = filters
  const offered = documentStatuses.includes(ix_status ?? 'draft')
    ? documentStatuses
    : [...documentStatuses, ix_status ?? '']
  const isEmptyRange = date_from !== undefined && date_to !== undefined && date_from > date_to

  return (
    <search class="filters" aria-label={words.filters}>
      <SearchField value={filters.q ?? ''} onChange={q => set({ q })} />
      <label>
        <span>{words.filterStatus}</span>
        <select
          value={filters.status ?? ''}
          onChange={({ currentTarget }) =>
            set({ status: (currentTarget.value || undefined) as InvoiceFilters['status'] })
          }
        >
          <option value="">{words.any}</option>
          {invoiceStatuses.map(status => (
            <option key={status} value={status}>
              {words.status[status]}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>{words.filterDocument}</span>
        <select
          value={ix_status ?? ''}
          onChange={({ currentTarget }) => set({ ix_status: currentTarget.value })}
        >
          <option value="">{words.any}</option>
          {offered.map(status => (
            <option key={status} value={status}>
              {words.document[status] ?? status}
            </option>
          ))}
        </select>
      </label>
      <DayField label={words.from} value={date_from} onChange={day => set({ date_from: day })} />
      <DayField label={words.to} value={date_to} onChange={day => set({ date_to: day })} />
      {Object.keys(filters).length > 0 && (
        <button type="button" class="clear" onClick={clear}>
          {words.clear}
        </button>
      )}
      {isEmptyRange && (
        <p class="error" role="alert">
          {words.wrongRange}
        </p>
      )}
    </search>
  )
}

interface DayFieldProps {
  label: string
  value: string | undefined
  onChange(day: string): void
}

function DayField({ label, value, onChange }: DayFieldProps) {
  return (
    <label>
      <span>{label}</span>
      <input
        type="date"
        value={value ?? ''}
        max="9999-12-31"
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
      />
    </label>
  )
}

function SearchField({ value, onChange }: { value: string; onChange(q: string): void }) {
  const { words } = usePage()
  const [text, setText] = useState(value)
  const typing = useRef<ReturnType<typeof setTimeout>>(undefined)
  // Cleared elsewhere, or gone back.
  useEffect(() => setText(value), [value])
  useEffect(() => () => clearTimeout(typing.current), [])
  const search = (q: string, waitMs: number) => {
    clearTimeout(typing.current)
    typing.current = setTimeout(() => q.trim() !== value && onChange(q.trim()), waitMs)
  }
  return (
    <label class="search">
      <span>{words.search}</span>
      <input
        type="search"
        value={text}
        maxLength={200}
        placeholder={words.searchHint}
        autoComplete="off"
        onInput={({ currentTarget }) => {
          setText(currentTarget.value)
          search(currentTarget.value, typingMs)
        }}
        onKeyDown={({ key }) => key === 'Enter' && search(text, 0)}
      />
    </label>
  )
}
