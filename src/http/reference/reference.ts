/** The API reference: an interactive page, a plain page without a script, and a text for language models. */
import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { makeStaticFile, nameContent, type StaticFile } from '../static-files.ts'
import type { ApiDocument } from './api-document.ts'
import { writeApiPage } from './api-page.ts'
import { writeLlmsText } from './llms-text.ts'

const html = 'text/html; charset=utf-8'

/** `folder` holds the script, as `scripts/build-reference.ts` made it. */
export function loadReference(apiDescription: Buffer, folder: URL): StaticFile[] {
  const document: ApiDocument = JSON.parse(apiDescription.toString())
  const { page, style } = writeApiPage(document)
  return [
    ...interactivePage(document, folder),
    makeStaticFile({
      path: '/docs/api.html',
      type: html,
      content: page,
      policy: { 'style-src': `'sha256-${hash('sha256', style, 'base64')}'`, 'img-src': 'data:' },
    }),
    makeStaticFile({
      path: '/llms.txt',
      type: 'text/plain; charset=utf-8',
      content: writeLlmsText(document),
    }),
  ]
}

/** No request goes to another host: no fonts, no proxy, no telemetry, no assistant. */
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

function interactivePage({ info }: ApiDocument, folder: URL): StaticFile[] {
  const name = readdirSync(folder)
    .find(file => /^scalar-\w+\.js\.br$/.test(file))
    ?.slice(0, -'.br'.length)
  const read = (ending: string) => readFileSync(new URL(name + ending, folder))
  // A part of the script would try to compile code; the policy would refuse that, and report it.
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
