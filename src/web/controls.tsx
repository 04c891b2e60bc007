/** Buttons, switches, and links to other views. */
import type { ButtonHTMLAttributes, ComponentChildren, Ref } from 'preact'
import { useContext } from 'preact/hooks'
import { HeadingLevel, usePage } from './context.ts'
import type { UrlState } from './url-state.ts'

export function Button({ text, ...attributes }: ButtonHTMLAttributes & { text: string }) {
  return (
    <button type="button" {...attributes}>
      {text}
    </button>
  )
}

interface HeadingProps {
  /** Rank among this page's headings. The rank also determines the style. */
  rank: 1 | 2 | 3
  inner?: Ref<HTMLHeadingElement>
  tabIndex?: number
  children: ComponentChildren
}

export function Heading({ rank, inner, ...attributes }: HeadingProps) {
  const level = Math.min(6, useContext(HeadingLevel) + rank - 1)
  const Tag = `h${level}` as 'h1'
  return <Tag class={`h${rank}`} {...(inner && { ref: inner })} {...attributes} />
}

interface SwitchProps<Value extends string> {
  legend: string
  /** The possible values. A name is shown as a tooltip and read by screen readers. */
  options: readonly (readonly [value: Value, name?: string])[]
  value: Value
  onChange(value: Value): void
}

/** A group of buttons of which exactly one is pressed. */
export function Switch<Value extends string>({ legend, options, value, onChange }: SwitchProps<Value>) {
  return (
    <fieldset class="switch">
      <legend class="hidden">{legend}</legend>
      {options.map(([option, name]) => (
        <Button
          text={option.toUpperCase()}
          key={option}
          {...(name && { lang: option, title: name, 'aria-label': `${option.toUpperCase()} ${name}` })}
          aria-pressed={option === value}
          onClick={() => onChange(option)}
        />
      ))}
    </fieldset>
  )
}

interface LinkProps {
  to: Partial<UrlState>
  class?: string
  children: ComponentChildren
}

/** Leads to another view. Where views have addresses, this is a link, which can also open in a new tab. In the element it is a button. */
export function Link({ to, class: name = '', children }: LinkProps) {
  const { nav } = usePage()
  const href = nav.hrefTo(to)
  const go = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0) return
    event.preventDefault()
    nav.go(to)
  }
  if (href === undefined)
    return (
      <button type="button" class={name === 'button' ? '' : `link ${name}`} onClick={go}>
        {children}
      </button>
    )
  return (
    <a href={href} class={name} onClick={go}>
      {children}
    </a>
  )
}

export function BackLink({ to }: { to: Partial<UrlState> }) {
  const { words } = usePage()
  return (
    <p class="back on-screen">
      <Link to={to}>
        <span aria-hidden="true">‹ </span>
        {words.back}
      </Link>
    </p>
  )
}
