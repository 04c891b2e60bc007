/**
 * Loads the files served to browsers beside the API: the billing page, the element `<fatura-invoices>`, and the
 * reference.
 */
import { readdirSync, readFileSync } from 'node:fs'
import type { Brand, Downloads, PageSettings } from '../domain/page-settings.ts'
import { locateFile } from './package.ts'
import { loadReference } from './reference/reference.ts'
import { makeStaticFile, nameContent, type StaticFile } from './static-files.ts'

/** The output folder of `scripts/build.ts`. */
export const builtFolder = locateFile('build/')

export interface Logo {
  type: string
  content: Buffer
}

export interface PageBrand extends Omit<Brand, 'logo'> {
  logo: Logo | null
}

const noBrand: PageBrand = {
  ...{ name: null, logo: null, accent: null, support: null },
  ...{ taxId: null, address: null, timeZone: 'UTC' },
}

export interface PageOptions {
  /** Origins whose pages may show the billing page in a frame. Default: none. */
  embedOrigins?: readonly string[] | undefined
  /** Whether invoices have a button to pay. Default: true. */
  pay?: boolean | undefined
  /** Which PDFs the page offers for download. Default: both kinds. */
  downloads?: Downloads | undefined
  /** Whether customers can sign in by e-mail. Default: false. */
  signIn?: boolean | undefined
  brand?: PageBrand | undefined
}

/** The committed OpenAPI document, as bytes. All answers that wait to be read share these bytes. */
export function readApiDescription(): Buffer {
  return readFileSync(locateFile('openapi.json'))
}

export function loadWebFiles(apiDescription: Buffer, options: PageOptions = {}): StaticFile[] {
  return [...loadPage(options), ...loadReference(apiDescription, new URL('reference/', builtFolder))]
}

const script = 'text/javascript; charset=utf-8'

const allDownloads: Downloads = { ix: true, payments: true }

export function loadPage(options: PageOptions): StaticFile[] {
  const { embedOrigins = [], pay = true, downloads = allDownloads, signIn = false, brand = noBrand } = options
  const folder = new URL('page/', builtFolder)
  const read = (path: string) => readFileSync(new URL(path, folder))
  const logo = brand.logo && { ...brand.logo, path: `/brand/${nameContent(brand.logo.content)}` }
  return [
    makeStaticFile({
      path: '/',
      type: 'text/html; charset=utf-8',
      content: writePage(read('page.html').toString(), {
        embedOrigins,
        pay,
        downloads,
        signIn,
        brand: { ...brand, logo: logo?.path ?? null },
      }),
      policy: {
        'script-src': "'self'",
        'connect-src': "'self'",
        'img-src': logo === null ? 'data:' : "'self' data:",
        'require-trusted-types-for': "'script'",
        ...(embedOrigins.length > 0 && { 'frame-ancestors': embedOrigins.join(' ') }),
      },
    }),
    // An SVG that is opened directly runs no script, because the policy of every answer allows none.
    ...(logo === null ? [] : [makeStaticFile({ ...logo, isImmutable: true })]),
    // Other sites use this path, so it never changes, and browsers ask for the file each time.
    makeStaticFile({
      path: '/fatura-invoices.js',
      type: script,
      content: `globalThis.faturaPage=${JSON.stringify({ pay, downloads })};${read('fatura-invoices.js')}`,
    }),
    ...readdirSync(new URL('assets/', folder)).map(name =>
      makeStaticFile({
        path: `/assets/${name}`,
        type: script,
        content: read(`assets/${name}`),
        isImmutable: true,
      }),
    ),
  ]
}

function writePage(html: string, settings: PageSettings): string {
  const { name, logo } = settings.brand
  return html
    .replace('name="fatura-page" content=""', () => {
      return `name="fatura-page" content="${escapeHtml(JSON.stringify(settings))}"`
    })
    .replace(/(?<=<title>)[^<]*/, title => escapeHtml(name ?? title))
    .replace('href="data:,"', () => `href="${logo ?? 'data:,'}"`)
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, sign => `&#${sign.charCodeAt(0)};`)
}
