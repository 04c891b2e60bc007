/** The API reference: one interactive page, one plain page without a script, and a text for machines that read. */
import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { makeStaticFile, nameContent, type StaticFile } from '../static-files.ts'
import type { ApiDocument } from './api-document.ts'
import { writeApiPage } from './api-page.ts'
import { writeLlmsText } from './llms-text.ts'

const html = 'text/html; charset=utf-8'

export function loadReference(apiDescription: Buffer, builtFolder: URL): StaticFile[] {
  const document: ApiDocument = JSON.parse(apiDescription.toString())
  const { page, style } = writeApiPage(document)
  const plain = {
    type: html,
    content: page,
    security: policy({ 'style-src': `'sha256-${hash('sha256', style, 'base64')}'`, 'img-src': 'data:' }),
  }
  const script = findScript(new URL('reference/', builtFolder))
  return [
    ...(script === null ? [makeStaticFile({ path: '/docs', ...plain })] : interactivePage(document, script)),
    makeStaticFile({ path: '/docs/api.html', ...plain }),
    makeStaticFile({
      path: '/llms.txt',
      type: 'text/plain; charset=utf-8',
      content: writeLlmsText(document),
    }),
  ]
}

interface BuiltScript {
  name: string
  content: { br: Buffer; gzip: Buffer }
}

/** Null where `scripts/build.ts` did not run. */
function findScript(folder: URL): BuiltScript | null {
  let files: string[]
  try {
    files = readdirSync(folder)
  } catch {
    return null
  }
  const name = files.find(file => /^scalar-\w+\.js\.br$/.test(file))?.slice(0, -'.br'.length)
  if (name === undefined) return null
  const read = (ending: string) => readFileSync(new URL(name + ending, folder))
  return { name, content: { br: read('.br'), gzip: read('.gz') } }
}

/** Nothing of it asks another host: no fonts, no proxy, no telemetry, no assistant. */
const configuration = {
  url: '/api/v1/openapi.json',
  withDefaultFonts: false,
  telemetry: false,
  proxyUrl: '',
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: 'never',
  hideClientButton: true,
  persistAuth: false,
  authentication: { preferredSecurityScheme: 'bearer' },
  defaultOpenAllTags: true,
  documentDownloadType: 'json',
}

function interactivePage({ info }: ApiDocument, { name, content }: BuiltScript): StaticFile[] {
  // A part of the script would try whether it may compile code; the policy would refuse that, and report it.
  const start = `globalThis.__zod_globalConfig = { jitless: true }
addEventListener('DOMContentLoaded', () =>
  Scalar.createApiReference('#reference', ${JSON.stringify(configuration)}))
`
  const startPath = `/docs/start-${nameContent(start)}.js`
  const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${info.title} API reference</title>
<link rel="icon" href="data:,">
<div id="reference"></div>
<noscript><p>This page needs JavaScript. <a href="/docs/api.html">The same without it</a>.</p></noscript>
<script src="${startPath}"></script>
<script src="/docs/${name}"></script>
</html>
`
  const type = 'text/javascript; charset=utf-8'
  return [
    makeStaticFile({
      path: '/docs',
      type: html,
      content: page,
      security: policy({
        'script-src': "'self'",
        // The reference sets its styles one by one.
        'style-src': "'unsafe-inline'",
        'img-src': "'self' data:",
        'font-src': "'self' data:",
        'connect-src': "'self'",
      }),
    }),
    makeStaticFile({ path: `/docs/${name}`, type, content, isImmutable: true }),
    makeStaticFile({ path: startPath, type, content: start, isImmutable: true }),
  ]
}

/** Nothing is allowed that is not given. */
function policy(allowed: Record<string, string>): Record<string, string> {
  const directives = Object.entries({
    'default-src': "'none'",
    'base-uri': "'none'",
    'form-action': "'none'",
    'frame-ancestors': "'none'",
    ...allowed,
  })
  return { 'content-security-policy': directives.map(([name, source]) => `${name} ${source}`).join('; ') }
}
