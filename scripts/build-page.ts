/** The billing page and the element, bundled: what the committed tree has as source, and a browser as a few small files. */
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Metafile, type OutputFile, type Plugin, transform } from 'esbuild'

const root = new URL('..', import.meta.url)
const source = new URL('src/web/', root)
const pathOf = (file: string) => fileURLToPath(new URL(file, source))

/** Writes `page.html`, `fatura-invoices.js`, and `assets/`, whose names change with their content, into `page/` of the folder. */
export async function buildPage(buildFolder: URL): Promise<void> {
  const folder = new URL('page/', buildFolder)
  const { outputFiles, metafile } = await bundleScripts()
  const [page, element] = [nameOf(metafile, 'page.tsx'), nameOf(metafile, 'element.tsx')]
  const isElement = ({ path }: OutputFile) => basename(path) === element
  const assets = outputFiles.filter(file => !isElement(file))

  // Others may read while this writes: what is named by its content is never changed, and what is not is changed at once.
  const assetFolder = new URL('assets/', folder)
  await mkdir(assetFolder, { recursive: true })
  for (const { path, contents } of assets) await replace(new URL(basename(path), assetFolder), contents)
  await replace(new URL('fatura-invoices.js', folder), moveUp(outputFiles.find(isElement)?.text ?? ''))
  await replace(new URL('page.html', folder), await writeHtml(page, metafile))
  const names = assets.map(({ path }) => basename(path))
  for (const name of await readdir(assetFolder))
    if (!names.includes(name) && !/\.\d+$/.test(name)) await rm(new URL(name, assetFolder), { force: true })
}

/** The sheet, as a text in the script. */
const styles: Plugin = {
  name: 'styles',
  setup({ onLoad }) {
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, 'utf8'), {
        loader: 'css',
        minify: true,
        target: ['chrome123', 'firefox121', 'safari17.5'],
      })
      return { contents: code, loader: 'text' }
    })
  },
}

function bundleScripts() {
  return build({
    absWorkingDir: fileURLToPath(root),
    entryPoints: [pathOf('page.tsx'), pathOf('element.tsx')],
    outdir: fileURLToPath(root),
    bundle: true,
    splitting: true,
    format: 'esm',
    target: 'es2023',
    minify: true,
    legalComments: 'none',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    plugins: [styles],
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    metafile: true,
    write: false,
  })
}

function nameOf({ outputs }: Metafile, entry: string): string {
  const found = Object.entries(outputs).find(([, { entryPoint }]) => entryPoint?.endsWith(`/${entry}`))
  return basename(found?.[0] ?? '')
}

/** Everything else of the bundle lies a folder deeper than the element, whose name must stay. */
function moveUp(script: string): string {
  return script.replaceAll(/(from|import)\s*(\(?)"\.\//g, '$1$2"./assets/')
}

/** All that the page needs at first is asked for at once. */
async function writeHtml(page: string, { outputs }: Metafile): Promise<string> {
  const chunks = (outputs[page]?.imports ?? []).filter(({ kind }) => kind === 'import-statement')
  const tags = [
    ...chunks.map(({ path }) => `<link rel="modulepreload" href="/assets/${basename(path)}">`),
    `<script type="module" src="/assets/${page}"></script>`,
  ]
  const html = await readFile(pathOf('page.html'), 'utf8')
  return html.replace('  </head>', `${tags.map(tag => `    ${tag}\n`).join('')}  </head>`)
}

async function replace(file: URL, contents: string | Uint8Array): Promise<void> {
  const before = await readFile(file).catch(() => null)
  if (before?.equals(Buffer.from(contents))) return
  const written = new URL(`${file.href}.${process.pid}`)
  await writeFile(written, contents)
  await rename(written, file)
}
