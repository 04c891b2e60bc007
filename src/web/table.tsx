/** Parts of tables. Each part sets its ARIA role, because a table loses its roles where CSS displays rows as cards. */
import type { ComponentChildren, TdHTMLAttributes } from 'preact'

interface TableHeadProps {
  class?: string
  texts: readonly string[]
  /** Headings of number columns, which come after the text columns. */
  numbers?: readonly string[]
  children?: ComponentChildren
}

export function TableHead({ texts, numbers = [], children, ...attributes }: TableHeadProps) {
  return (
    <thead role="rowgroup" {...attributes}>
      <tr role="row">
        {[...texts, ...numbers].map((text, index) => (
          <th role="columnheader" scope="col" key={text} class={index < texts.length ? '' : 'number'}>
            {text}
          </th>
        ))}
        {children}
      </tr>
    </thead>
  )
}

export function RowHead({ children }: { children: ComponentChildren }) {
  return (
    <th role="rowheader" scope="row">
      {children}
    </th>
  )
}

export function Cell(attributes: TdHTMLAttributes) {
  return <td role="cell" {...attributes} />
}

/** The label is shown beside the number where the column headings are hidden. */
export function NumberCell({ label, text }: { label: string; text: string }) {
  return (
    <Cell class="number" data-label={label}>
      {text}
    </Cell>
  )
}
