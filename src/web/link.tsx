/** A step to another place of the page: an address where there is one, so that it opens in a new tab as well. */
import type { ComponentChildren } from 'preact'
import { usePage } from './context.ts'
import type { Place } from './place.ts'

interface LinkProps {
  to: Partial<Place>
  class?: string
  label?: string | undefined
  children: ComponentChildren
}

export function Link({ to, class: name, label, children }: LinkProps) {
  const { nav } = usePage()
  const href = nav.hrefTo(to)
  const go = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0) return
    event.preventDefault()
    nav.go(to)
  }
  if (href === undefined)
    return (
      <button type="button" class={`link ${name ?? ''}`} aria-label={label} onClick={go}>
        {children}
      </button>
    )
  return (
    <a href={href} class={name} aria-label={label} onClick={go}>
      {children}
    </a>
  )
}
