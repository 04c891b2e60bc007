/** A step to another view: a link where views have addresses, so that it opens in a new tab as well; else a button. */
import type { ComponentChildren } from 'preact'
import { usePage } from './context.ts'
import type { UrlState } from './url-state.ts'

interface LinkProps {
  to: Partial<UrlState>
  /** `button` looks like the buttons beside it. */
  class?: string
  children: ComponentChildren
}

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
