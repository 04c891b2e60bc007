/** The billing page and the element, bundled: what the committed tree has as source, and a browser as a few small files. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { build } from 'esbuild'

const root = new URL('..', import.meta.url).pathname
const source = join(root, 'src/web')

/** What a page on another host names in its script tag: it must stay the same. */
const elementName = 'fatura-invoices.js'

/** Writes the files into `folder`: `page.html`, `fatura-invoices.js`, and `assets/`, whose names change with their content. */
export async function buildPage(folder: string): Promise<void> {
  const styles = await build({
    entryPoints: [join(source, 'styles.css')],
    outdir: folder,
    minify: true,
    target: ['chrome123', 'firefox121', 'safari17.5'],
    entryNames: '[name]-[hash]',
    write: false,
  })
  const [sheet] = styles.outputFiles
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: [join(source, 'page.tsx'), join(source, 'element.tsx')],
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    target: 'es2023',
    minify: true,
    legalComments: 'none',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    plugins: [
      {
        name: 'styles',
        setup: ({ onLoad }) =>
          onLoad({ filter: /\.css$/ }, () => ({ contents: sheet?.text ?? '', loader: 'text' })),
      },
    ],
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    metafile: true,
    write: false,
  })
  await rm(folder, { recursive: true, force: true })
  await mkdir(join(folder, 'assets'), { recursive: true })
  const outputs = Object.entries(metafile.outputs)
  const nameOf = (entry: string) =>
    basename(outputs.find(([, { entryPoint }]) => entryPoint?.endsWith(entry))?.[0] ?? '')
  const [page, element] = [nameOf('page.tsx'), nameOf('element.tsx')]
  for (const { path, contents } of [...outputFiles, ...styles.outputFiles])
    if (basename(path) !== element) await writeFile(join(folder, 'assets', basename(path)), contents)
  const script = outputFiles.find(({ path }) => basename(path) === element)
  await writeFile(
    join(folder, elementName),
    (script?.text ?? '').replaceAll(/(from|import)\s*(\(?)"\.\//g, '$1$2"./assets/'),
  )
  const chunks = outputs
    .find(([path]) => basename(path) === page)?.[1]
    .imports.filter(({ kind }) => kind === 'import-statement')
    .map(({ path }) => basename(path))
  const links = [
    `<link rel="stylesheet" href="/assets/${basename(sheet?.path ?? '')}">`,
    ...(chunks ?? []).map(name => `<link rel="modulepreload" href="/assets/${name}">`),
    `<script type="module" src="/assets/${page}"></script>`,
  ]
  const html = await readFile(join(source, 'page.html'), 'utf8')
  await writeFile(
    join(folder, 'page.html'),
    html.replace('  </head>', `${links.map(l => `    ${l}`).join('\n')}\n  </head>`),
  )
}
