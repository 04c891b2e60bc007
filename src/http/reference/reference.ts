/** The API reference: an interactive page, and a text for language models. */
import { readdirSync, readFileSync } from 'node:fs'
import { makeStaticFile, nameContent, type StaticFile } from '../static-files.ts'
import { type ApiDocument, listErrors, listOperations } from './api-document.ts'
import { writeLlmsText } from './llms-text.ts'

const html = 'text/html; charset=utf-8'

/** `folder` holds the script that `scripts/build-reference.ts` made. */
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

/** The page sends no request to another host: no fonts, no proxy, no telemetry, no assistant. */
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

/**
 * The script that starts the page. It fills in the required parameters of a request from `#t=TOKEN&c=cus_…` in the
 * URL, or from the session of the billing page.
 */
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
// The list of invoices stands first, because most readers look for it.
function listFirst(paths) {
  const found = Object.entries(paths)
  const list = found.findIndex(([path]) => path.endsWith('/{customerId}/invoices'))
  return Object.fromEntries([...found.slice(list), ...found.slice(0, list)])
}
// Only characters that a shell does not interpret are copied into the command.
const plain = (text, other) => (/^[\\w.~-]+$/.test(text ?? '') ? text : other)
function introduce({ token, customer }) {
  const path = '/api/v1/client/' + plain(customer, 'cus_…') + '/invoices?page_size=3'
  const curl = 'curl -s -H "Authorization: Bearer ' + plain(token, 'TOKEN') + '" "' + location.origin + path + '"'
  return '\`\`\`sh\\n' + curl + '\\n\`\`\`\\n\\n'
}
addEventListener('DOMContentLoaded', async () => {
  const access = takeAccess()
  const [content, values] = await Promise.all([ask('/api/v1/openapi.json'), findValues(access)])
  content.paths = listFirst(content.paths)
  content.info.description = introduce(access) + content.info.description + errors
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

function explainErrors(document: ApiDocument): string {
  const rows = listErrors(listOperations(document)).map(
    ({ code, status, meaning }) => `| \`${code}\` | ${status} | ${meaning} |`,
  )
  return [
    '\n\n# Errors\n',
    'Every error is `{"error": {"code", "message", "param"?, "request_id"}}`. Programs decide by `code`. `message` is text for developers, and ' +
      '`request_id` finds the request in the log. After 429 and 503, wait for `Retry-After` seconds.\n',
    '| Code | Status | Meaning |',
    '|---|---|---|',
    ...rows,
  ].join('\n')
}

function interactivePage(document: ApiDocument, folder: URL): StaticFile[] {
  const { info } = document
  const name = readdirSync(folder)
    .find(file => /^scalar-\w+\.js\.br$/.test(file))
    ?.slice(0, -'.br'.length)
  const read = (ending: string) => readFileSync(new URL(name + ending, folder))
  // Without `jitless`, a part of the script would try to compile code. The policy would refuse and report that.
  const start = `globalThis.__zod_globalConfig = { jitless: true }
const configuration = ${JSON.stringify(configuration)}
const errors = ${JSON.stringify(explainErrors(document))}
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
        // The reference sets inline styles.
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
