/** The API reference: an interactive page, and a text for language models. */
import { readdirSync, readFileSync } from 'node:fs'
import { makeStaticFile, nameContent, type StaticFile } from '../static-files.ts'
import type { ApiDocument } from './api-document.ts'
import { writeLlmsText } from './llms-text.ts'

const html = 'text/html; charset=utf-8'

/** `folder` holds the script, as `scripts/build-reference.ts` made it. */
export function loadReference(apiDescription: Buffer, folder: URL): StaticFile[] {
  const document: ApiDocument = JSON.parse(apiDescription.toString())
  return [
    ...interactivePage(document, folder),
    makeStaticFile({
      path: '/llms.txt',
      type: 'text/plain; charset=utf-8',
      content: writeLlmsText(document),
    }),
  ]
}

/** No request goes to another host: no fonts, no proxy, no telemetry, no assistant. */
const configuration = {
  withDefaultFonts: false,
  telemetry: false,
  proxyUrl: '',
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: 'never',
  hideClientButton: true,
  persistAuth: false,
  defaultOpenAllTags: true,
  documentDownloadType: 'json',
}

/** A request to try begins with the required parameters of the access in `#t=TOKEN&c=cus_…`, or of the page's session. */
const startReference = `const read = text => { try { return JSON.parse(text) } catch { return null } }
const claimsOf = token => read(atob((token.split('.')[1] ?? '').replace(/-/g, '+').replace(/_/g, '/')))
function takeAccess() {
  const given = new URLSearchParams(location.hash.slice(1))
  const token = given.get('t')
  if (token === null) return read(sessionStorage.getItem('fatura')) ?? {}
  history.replaceState(history.state, '', location.pathname)
  const { sub, invoice } = claimsOf(token) ?? {}
  return { token, customer: given.get('c') ?? sub, invoice }
}
const ask = async (path, headers = {}) => {
  const response = await fetch(path, { headers })
  return response.ok ? response.json() : {}
}
async function findValues({ token, customer, invoice }) {
  if (!token || !customer) return {}
  const path = '/api/v1/client/' + encodeURIComponent(customer) + '/invoices?page_size=1'
  const { invoices = [] } = invoice ? {} : await ask(path, { authorization: 'Bearer ' + token })
  return { customerId: customer, invoiceId: invoice ?? invoices[0]?.id }
}
addEventListener('DOMContentLoaded', async () => {
  const access = takeAccess()
  const [content, values] = await Promise.all([ask('/api/v1/openapi.json'), findValues(access)])
  for (const { get } of Object.values(content.paths))
    for (const parameter of get.parameters ?? []) {
      const value = values[parameter.name] ?? parameter.example
      parameter.examples = { default: { value, 'x-disabled': !parameter.required } }
      delete parameter.example
    }
  const securitySchemes = { bearer: { token: access.token ?? '' } }
  const authentication = { preferredSecurityScheme: 'bearer', securitySchemes }
  Scalar.createApiReference('#reference', { ...configuration, content, authentication })
})
`

function interactivePage({ info }: ApiDocument, folder: URL): StaticFile[] {
  const name = readdirSync(folder)
    .find(file => /^scalar-\w+\.js\.br$/.test(file))
    ?.slice(0, -'.br'.length)
  const read = (ending: string) => readFileSync(new URL(name + ending, folder))
  // A part of the script would try to compile code; the policy would refuse that, and report it.
  const start = `globalThis.__zod_globalConfig = { jitless: true }
const configuration = ${JSON.stringify(configuration)}
${startReference}`
  const startPath = `/docs/start-${nameContent(start)}.js`
  const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${info.title} API reference</title>
<link rel="icon" href="data:,">
<div id="reference"></div>
<noscript><p>This page needs JavaScript. <a href="/llms.txt">A text without it</a>.</p></noscript>
<script src="${startPath}"></script>
<script src="/docs/${name}"></script>
</html>
`
  const script = { type: 'text/javascript; charset=utf-8', isImmutable: true }
  return [
    makeStaticFile({
      path: '/docs',
      type: html,
      content: page,
      policy: {
        'script-src': "'self'",
        // The reference sets its styles one by one.
        'style-src': "'unsafe-inline'",
        'img-src': "'self' data:",
        'font-src': "'self' data:",
        'connect-src': "'self'",
      },
    }),
    makeStaticFile({ ...script, path: `/docs/${name}`, content: { br: read('.br'), gzip: read('.gz') } }),
    makeStaticFile({ ...script, path: startPath, content: start }),
  ]
}
