/** The billing page and the element `<fatura-invoices>`, as `scripts/build-page.ts` made them. */
import { readdirSync, readFileSync } from 'node:fs'
import { makeStaticFile, type StaticFile } from './static-files.ts'

const script = 'text/javascript; charset=utf-8'
const types: Record<string, string> = { js: script, css: 'text/css; charset=utf-8' }

/** None where `scripts/build.ts` did not run. `embedOrigins` may show the page in a frame. */
export function loadPage(builtFolder: URL, embedOrigins: readonly string[]): StaticFile[] {
  const folder = new URL('page/', builtFolder)
  const read = (path: string) => readFileSync(new URL(path, folder))
  let names: string[]
  try {
    names = readdirSync(new URL('assets/', folder))
  } catch {
    return []
  }
  return [
    makeStaticFile({
      path: '/',
      type: 'text/html; charset=utf-8',
      content: nameOrigins(read('page.html').toString(), embedOrigins),
      security: { 'content-security-policy': writePolicy(embedOrigins) },
    }),
    // Its name stays, because pages of others hold it: so it is asked for again each time.
    makeStaticFile({ path: '/fatura-invoices.js', type: script, content: read('fatura-invoices.js') }),
    ...names.map(name =>
      makeStaticFile({
        path: `/assets/${name}`,
        type: types[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream',
        content: read(`assets/${name}`),
        isImmutable: true,
      }),
    ),
  ]
}

/** The page hands a chosen invoice to these origins, and to no other. Origins hold no character that HTML minds. */
function nameOrigins(html: string, origins: readonly string[]): string {
  return html.replace(
    '<meta name="fatura-embed-origins" content="">',
    `<meta name="fatura-embed-origins" content="${origins.join(' ')}">`,
  )
}

/** No style and no script but the files of this host, and no request to another. */
function writePolicy(embedOrigins: readonly string[]): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    `frame-ancestors ${embedOrigins.length > 0 ? embedOrigins.join(' ') : "'none'"}`,
  ].join('; ')
}
