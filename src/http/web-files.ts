/** The files served for browsers beside the API: the billing page, the element `<fatura-invoices>`, and the reference. */
import { readdirSync, readFileSync } from 'node:fs'
import { locateFile } from '../package.ts'
import { loadReference } from './reference/reference.ts'
import { makeStaticFile, nameContent, type StaticFile } from './static-files.ts'

/** The output folder of `scripts/build.ts`. */
export const builtFolder = locateFile('build/')

export interface Logo {
  /** The content type. */
  type: string
  content: Buffer
}

/** The company whose page it is. */
export interface PageBrand {
  name: string | null
  logo: Logo | null
  /** #rrggbb. */
  accent: string | null
  /** A mail address, or an https one. */
  support: string | null
  /** Of the days in CSV files. */
  timeZone: string
}

const noBrand: PageBrand = { name: null, logo: null, accent: null, support: null, timeZone: 'UTC' }

/** Pages of `embedOrigins` may show the billing page in a frame. */
export function loadWebFiles(
  apiDescription: Buffer,
  embedOrigins: readonly string[] = [],
  brand = noBrand,
): StaticFile[] {
  const reference = loadReference(apiDescription, new URL('reference/', builtFolder))
  return [...loadPage(embedOrigins, brand), ...reference]
}

const script = 'text/javascript; charset=utf-8'
const types: Record<string, string> = { js: script, css: 'text/css; charset=utf-8' }

export function loadPage(embedOrigins: readonly string[], brand = noBrand): StaticFile[] {
  const folder = new URL('page/', builtFolder)
  const read = (path: string) => readFileSync(new URL(path, folder))
  const logo = brand.logo && { ...brand.logo, path: `/brand/${nameContent(brand.logo.content)}` }
  return [
    makeStaticFile({
      path: '/',
      type: 'text/html; charset=utf-8',
      content: addBrand(nameOrigins(read('page.html').toString(), embedOrigins), brand, logo?.path ?? null),
      policy: {
        'script-src': "'self'",
        'style-src': "'self'",
        'connect-src': "'self'",
        'img-src': logo === null ? 'data:' : "'self' data:",
        'require-trusted-types-for': "'script'",
        ...(embedOrigins.length > 0 && { 'frame-ancestors': embedOrigins.join(' ') }),
      },
    }),
    // Opened by itself, an SVG runs no script: the policy of every answer allows none.
    ...(logo === null ? [] : [makeStaticFile({ ...logo, isImmutable: true })]),
    // Pages of others hold this name, so it stays, and browsers ask for the file each time.
    makeStaticFile({ path: '/fatura-invoices.js', type: script, content: read('fatura-invoices.js') }),
    ...readdirSync(new URL('assets/', folder)).map(name =>
      makeStaticFile({
        path: `/assets/${name}`,
        type: types[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream',
        content: read(`assets/${name}`),
        isImmutable: true,
      }),
    ),
  ]
}

function addBrand(html: string, { logo: _, ...brand }: PageBrand, logo: string | null): string {
  const icon = '<link rel="icon" href="data:,">'
  return html
    .replace(
      '<meta name="fatura-brand" content="">',
      () => `<meta name="fatura-brand" content="${escapeHtml(JSON.stringify({ ...brand, logo }))}">`,
    )
    .replace(/(?<=<title>)[^<]*/, title => escapeHtml(brand.name ?? title))
    .replace(icon, logo === null ? icon : `<link rel="icon" href="${logo}">`)
}

const escapes: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, character => escapes[character] ?? '')
}

/** The page posts a chosen invoice to these origins alone. An origin has no character that HTML escapes. */
function nameOrigins(html: string, origins: readonly string[]): string {
  return html.replace(
    '<meta name="fatura-embed-origins" content="">',
    `<meta name="fatura-embed-origins" content="${origins.join(' ')}">`,
  )
}
