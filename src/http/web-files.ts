/** The files served for browsers beside the API: the billing page, the element `<fatura-invoices>`, and the reference. */
import { readdirSync, readFileSync } from 'node:fs'
import { locateFile } from '../package.ts'
import { loadReference } from './reference/reference.ts'
import { makeStaticFile, type StaticFile } from './static-files.ts'

/** The output folder of `scripts/build.ts`. */
export const builtFolder = locateFile('build/')

export interface PageOptions {
  /** Origins whose pages may show the billing page in a frame. Default: none. */
  embedOrigins?: readonly string[] | undefined
  /** Whether invoices have a button to pay. Default: true. */
  pay?: boolean | undefined
}

export function loadWebFiles(apiDescription: Buffer, options: PageOptions = {}): StaticFile[] {
  return [...loadPage(options), ...loadReference(apiDescription, new URL('reference/', builtFolder))]
}

const script = 'text/javascript; charset=utf-8'
const types: Record<string, string> = { js: script, css: 'text/css; charset=utf-8' }

export function loadPage({ embedOrigins = [], pay = true }: PageOptions): StaticFile[] {
  const folder = new URL('page/', builtFolder)
  const read = (path: string) => readFileSync(new URL(path, folder))
  return [
    makeStaticFile({
      path: '/',
      type: 'text/html; charset=utf-8',
      content: writePage(read('page.html').toString(), embedOrigins, pay),
      policy: {
        'script-src': "'self'",
        'style-src': "'self'",
        'connect-src': "'self'",
        'img-src': 'data:',
        'require-trusted-types-for': "'script'",
        ...(embedOrigins.length > 0 && { 'frame-ancestors': embedOrigins.join(' ') }),
      },
    }),
    // Pages of others hold this name, so it stays, and browsers ask for the file each time.
    makeStaticFile({
      path: '/fatura-invoices.js',
      type: script,
      content: `${pay ? '' : 'globalThis.faturaPay="off";'}${read('fatura-invoices.js')}`,
    }),
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

/** The page posts a chosen invoice to these origins alone. An origin has no character that HTML escapes. */
function writePage(html: string, origins: readonly string[], pay: boolean): string {
  return html
    .replace(
      '<meta name="fatura-embed-origins" content="">',
      `<meta name="fatura-embed-origins" content="${origins.join(' ')}">`,
    )
    .replace(
      '<meta name="fatura-pay" content="on">',
      `<meta name="fatura-pay" content="${pay ? 'on' : 'off'}">`,
    )
}
