/** Filters of the list. Each choice is written to the address at once. */
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { dayOf } from '../domain/calendar.ts'
import { invoiceStatuses } from '../domain/invoice.ts'
import type { InvoiceFilters } from '../sdk/client.ts'
import { usePage } from './context.ts'
import { Button } from './controls.tsx'
import { periodsOf } from './periods.ts'

/** Statuses of an invoice's document. A status from the address is offered as well. */
const documentStatuses = ['draft', 'final', 'settled', 'canceled', 'second_copy']

const debounceMs = 350

interface FiltersProps {
  clear(): void
  children: ComponentChildren
}

/** On a narrow screen the filters are behind a button that shows how many are set. */
export function Filters({ clear, children }: FiltersProps) {
  const { nav, words } = usePage()
  const { filters } = nav.state
  const panel = useId()
  const [isOpen, setOpen] = useState(false)
  const set = (change: InvoiceFilters) => {
    const next = Object.fromEntries(Object.entries({ ...filters, ...change }).filter(([, value]) => value))
    nav.go({ filters: next, page: 1 })
  }
  const { ix_status, date_from, date_to } = filters
  const offered = [...new Set([...documentStatuses, ix_status ?? 'draft'])]
  const isEmptyRange = date_from !== undefined && date_to !== undefined && date_from > date_to
  const count = Object.keys(filters).length

  return (
    <search class="filtering stack on-screen" aria-label={words.filters}>
      <div class="bar row" tabIndex={-1}>
        {children}
        <Button
          text={count > 0 ? words.filtersSet(count) : words.filters}
          class="open-filters"
          aria-expanded={isOpen}
          aria-controls={panel}
          onClick={() => setOpen(!isOpen)}
        />
      </div>
      <div id={panel} class={`filters stack ${isOpen ? 'open' : ''}`}>
        <SearchField value={filters.q ?? ''} onChange={q => set({ q })} />
        <SelectField
          label={words.column.state}
          value={filters.status}
          options={invoiceStatuses.map(status => [status, words.status[status]])}
          onChange={value => set({ status: value as NonNullable<InvoiceFilters['status']> })}
        />
        <SelectField
          label={words.filterDocument}
          value={ix_status}
          options={offered.map(status => [status, words.document[status] ?? status])}
          onChange={value => set({ ix_status: value })}
        />
        <DayField label={words.from} value={date_from} onChange={day => set({ date_from: day })} />
        <DayField label={words.to} value={date_to} onChange={day => set({ date_to: day })} />
        <Periods filters={filters} set={set} />
        {count > 0 && <Button text={words.clear} class="clear" onClick={clear} />}
        {isEmptyRange && (
          <p class="error" role="alert">
            {words.wrongRange}
          </p>
        )}
      </div>
    </search>
  )
}

/** Buttons for the usual accounting periods, such as the last month. */
function Periods({ filters, set }: { filters: InvoiceFilters; set(change: InvoiceFilters): void }) {
  const { words } = usePage()
  return (
    <fieldset class="periods row">
      <legend class="hidden">{words.period}</legend>
      {periodsOf(dayOf(Date.now())).map(({ name, from, to }) => {
        const isChosen = filters.date_from === from && filters.date_to === to
        const days = isChosen ? { date_from: '', date_to: '' } : { date_from: from, date_to: to }
        return (
          <Button
            text={words.periodName[name]}
            key={name}
            aria-pressed={isChosen}
            onClick={() => set(days)}
          />
        )
      })}
    </fieldset>
  )
}

interface FieldProps {
  label: string
  value: string | undefined
  onChange(value: string): void
}

type SelectFieldProps = FieldProps & { options: readonly (readonly [value: string, text: string])[] }

function SelectField({ label, value = '', options, onChange }: SelectFieldProps) {
  const { words } = usePage()
  return (
    <label class="stack">
      <span>{label}</span>
      <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        {[['', words.any] as const, ...options].map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}

function DayField({ label, value = '', onChange }: FieldProps) {
  return (
    <label class="stack">
      <span>{label}</span>
      <input
        type="date"
        value={value}
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
  // The value changes from outside when the filters are cleared or the user goes back.
  useEffect(() => setText(value), [value])
  useEffect(() => () => clearTimeout(typing.current), [])
  const search = (q: string, waitMs: number) => {
    clearTimeout(typing.current)
    typing.current = setTimeout(() => q.trim() !== value && onChange(q.trim()), waitMs)
  }
  return (
    <label class="search stack">
      <span>{words.search}</span>
      <input
        type="search"
        value={text}
        maxLength={200}
        placeholder={words.searchHint}
        autoComplete="off"
        onInput={({ currentTarget }) => {
          setText(currentTarget.value)
          search(currentTarget.value, debounceMs)
        }}
        onKeyDown={({ key }) => key === 'Enter' && search(text, 0)}
      />
    </label>
  )
}
