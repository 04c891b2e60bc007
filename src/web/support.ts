/** The contact for customers' questions. */
import type { Brand } from '../domain/page-settings.ts'

export interface SupportLink {
  href: string
  text: string
}

/** Returns null for an address that is neither e-mail nor http, such as a script. `about` becomes the subject of the e-mail. */
export function supportOf(
  { support }: Pick<Brand, 'support'>,
  about: string | null = null,
): SupportLink | null {
  if (support === null) return null
  if (/^[^\s@/:]+@[^\s@/:]+$/.test(support)) {
    const subject = about === null ? '' : `?subject=${encodeURIComponent(about)}`
    return { href: `mailto:${support}${subject}`, text: support }
  }
  return /^https?:\/\//.test(support)
    ? { href: support, text: support.replace(/^https?:\/\/|\/$/g, '') }
    : null
}
