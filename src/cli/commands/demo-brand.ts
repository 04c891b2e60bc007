/** The made-up company of the demo's page. */
import type { PageBrand } from '../../http/web-files.ts'

const logo = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#1d4e89"/><path d="M6 22h20M8 22a8 8 0 0 1 16 0" fill="none" stroke="#fff" stroke-width="2.5" stroke-linecap="round"/><path d="M16 5v4M6.5 9.5l2.5 2.5M25.5 9.5 23 12" stroke="#ffc94d" stroke-width="2.5" stroke-linecap="round"/></svg>`

export const demoBrand: PageBrand = {
  name: 'Aurora Software',
  logo: { type: 'image/svg+xml', content: Buffer.from(logo) },
  accent: '#1d4e89',
  support: 'faturas@aurora.example',
  timeZone: 'Europe/Lisbon',
}
