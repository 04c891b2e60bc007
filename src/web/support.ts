/** The operator's contact. */
import type { Brand } from '../domain/page-settings.ts'

export interface SupportLink {
  href: string
  text: string
}

/** Null for an address that is neither of mail nor of a page, such as a script. `about` fills in a mail's subject. */
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
