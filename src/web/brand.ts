/** The company whose page this is, by the service's settings or by the element's attributes. */
import type { Brand } from '../page-settings.ts'

/** Mixed with so much white, any colour is readable on the dark ground; the service checks it on the light one. */
export function accentOf({ accent }: Brand): Record<string, string> {
  if (accent === null || !/^#[\da-f]{6}$/i.test(accent)) return {}
  return { '--fatura-accent': `light-dark(${accent}, color-mix(in srgb, ${accent}, white 60%))` }
}

/** Null for an address that is neither, such as a script. */
export function supportOf({ support }: Brand): { href: string; text: string } | null {
  if (support === null) return null
  if (/^[^\s@/:]+@[^\s@/:]+$/.test(support)) return { href: `mailto:${support}`, text: support }
  return /^https?:\/\//.test(support)
    ? { href: support, text: support.replace(/^https?:\/\/|\/$/g, '') }
    : null
}
