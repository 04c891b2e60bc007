/** The package as people get it: packed, installed into an empty folder without development dependencies, and run there. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { publint } from 'publint'
import manifest from '../../package.json' with { type: 'json' }
import { get } from '../support/clients/cli.ts'

const root = join(import.meta.dirname, '../..')

/** Far longer than a step takes, so that only a hang or a network that does not answer reaches it. */
const patienceMs = 120_000

/** This Node, and npm without what the npm that runs this test tells of its own package. */
const env: NodeJS.ProcessEnv = { PATH: [dirname(process.execPath), process.env.PATH].join(delimiter) }
for (const [name, value] of Object.entries(process.env))
  if (name !== 'PATH' && (!/^(npm_|INIT_CWD|NODE_TEST)/i.test(name) || isSource(name))) env[name] = value

/** Where packages come from. */
function isSource(name: string): boolean {
  return /^npm_config_(registry|cache|userconfig|globalconfig|(https_?|no)?proxy|cafile|strict_ssl)$/i.test(
    name,
  )
}

function start(folder: string, command: string, ...args: string[]) {
  const child = spawn(command, args, { cwd: folder, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', text => {
      output[name] += text
    })
  const giveUp = setTimeout(() => signal(child, 'SIGKILL'), patienceMs)
  const exited = once(child, 'close').then(([code, signal]) => {
    clearTimeout(giveUp)
    return { code: code ?? signal, ...output }
  })
  return { child, output, exited }
}

/** To all processes of it, as a terminal does. */
function signal(child: ChildProcess, name: NodeJS.Signals): void {
  if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, name)
}

async function run(folder: string, command: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await start(folder, command, ...args).exited
  const why = /ENOTCACHED|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT/.test(stderr)
    ? 'the npm registry is not reached, and npm’s cache does not hold every package: '
    : ''
  assert.equal(code, 0, `${command} ${args.join(' ')}: ${why}${stderr}`)
  return stdout
}

/** Other tests run from this checkout meanwhile, and compiling replaces dist/. What npm ci built is taken along. */
async function copyCheckout(copy: string): Promise<string> {
  const left = ['.git', 'node_modules', 'test', 'bench', 'tools', 'dist', 'data']
  for (const entry of readdirSync(root))
    if (!left.includes(entry)) await cp(join(root, entry), join(copy, entry), { recursive: true })
  for (const folder of ['node_modules', 'tools']) await symlink(join(root, folder), join(copy, folder))
  return copy
}

describe('the npm package', { concurrency: 2 }, () => {
  let folder = ''
  let app = ''
  let packed: { path: string }[] = []
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fatura-package-'))
    app = join(folder, 'app')
    await mkdir(app)
    await writeFile(join(app, 'package.json'), '{}')
    const checkout = await copyCheckout(join(folder, 'checkout'))
    // What is written is the same without a check, which npm run check makes of the same files.
    await run(checkout, process.execPath, 'scripts/compile.ts', '--noCheck')
    const quietly = ['--json', '--loglevel=error', '--ignore-scripts', `--pack-destination=${folder}`]
    const told = await run(checkout, 'npm', 'pack', ...quietly)
    const [{ filename = '', files = [] } = {}] = JSON.parse(told.slice(told.search(/^\[/m)))
    packed = files
    const quiet = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error', '--ignore-scripts']
    await run(app, 'npm', 'install', ...quiet, join(folder, filename))
  })
  after(() => rm(folder, { recursive: true, force: true }))

  it('contains compiled code, its data and the docs, and no sources or tests', () => {
    const paths = packed.map(({ path }) => path)
    for (const path of [
      ...['bin/fatura.js', 'dist/src/cli/main.js', 'build/stripe.cjs', 'openapi.json', 'LICENSE'],
      ...['dist/src/store/sqlite/migrations/0001.sql', 'dist/src/store/postgres/migrations/0001.sql'],
      ...[
        'dist/src/sdk/client.js',
        'dist/src/sdk/client.d.ts',
        'dist/src/sdk/link.d.ts',
        'dist/src/sdk/element.d.ts',
        'build/page/fatura-invoices.js',
      ],
      ...['docs/install.md', 'README.md', 'CHANGELOG.md', 'ops/systemd/fatura.service'],
    ])
      assert.ok(paths.includes(path), path)
    assert.ok(
      paths.some(path => /^build\/.*\.js(\.br)?$/.test(path)),
      'the pages for browsers are built',
    )
    const odd = paths.filter(path => /^(src|test|bench|scripts)\/|(?<!\.d)\.tsx?$|\.tgz$|(^|\/)\./.test(path))
    assert.deepEqual(odd, [])
  })

  it('installs without development dependencies in at most 45 MB', () => {
    const { dependencies, devDependencies } = manifest
    for (const name of Object.keys(dependencies)) assert.ok(existsSync(join(app, 'node_modules', name)), name)
    const manifestOf = (name: string) =>
      JSON.parse(readFileSync(join(app, 'node_modules', name, 'package.json'), 'utf8'))
    const theirs = Object.keys(dependencies).flatMap(name => Object.keys(manifestOf(name).dependencies ?? {}))
    for (const name of Object.keys(devDependencies))
      if (!theirs.includes(name)) assert.ok(!existsSync(join(app, 'node_modules', name)), name)
    const files = readdirSync(join(app, 'node_modules'), { recursive: true, withFileTypes: true })
    const bytes = files
      .filter(entry => entry.isFile())
      .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)
    assert.ok(bytes > 1e6 && bytes <= 45e6, `${(bytes / 1e6).toFixed(1)} MB`)
  })

  it('has no install script that npm runs or reports', () => {
    const { scripts } = JSON.parse(readFileSync(join(app, 'node_modules/fatura/package.json'), 'utf8'))
    const told = ['preinstall', 'install', 'postinstall', 'prepare'].filter(name => name in scripts)
    assert.deepEqual(told, [])
  })

  it('runs: npx fatura demo serves invoices and PDFs, and Ctrl-C ends it', async () => {
    const { child, output, exited } = start(
      app,
      'npx',
      ...['--loglevel=error', '--no-install', 'fatura', 'demo', '--port', '0'],
    )
    try {
      while (!output.stdout.includes('Ctrl-C stops the demo'))
        await Promise.race([once(child.stdout, 'data'), exited.then(end => assert.fail(JSON.stringify(end)))])
      const [, api = ''] = /^ {2}export API=(\S+)$/m.exec(output.stdout) ?? []
      const [, token = ''] = /^ {2}export TOKEN=(\S+)$/m.exec(output.stdout) ?? []
      const paths = [...output.stdout.matchAll(/"\$API\/([^"]+)"/g)].map(([, path = '']) => path)
      const { status, json } = await get(`${api}/${paths[0]}`, token)
      assert.equal(status, 200)
      assert.ok(json.total > 0)
      const pdf = paths.find(path => path.endsWith('/payments/download'))
      assert.equal((await get(`${api}/${pdf}`, token)).headers.get('content-type'), 'application/pdf')
      const page = await get(new URL('/', api).href)
      assert.match(page.text, /<script[^>]+src=/, 'the page that was built, not the plain one')
    } finally {
      signal(child, 'SIGINT')
    }
    // npx itself ends by the signal; the program says that it came to its end.
    const { stdout, stderr } = await exited
    assert.equal(stderr, '')
    assert.match(stdout, /Its data is removed/)
  })

  it('is also a library: fatura/client can be imported, and fatura/link signs a link', async () => {
    const key = {
      ...generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }),
      kid: 'key_0123456789aB',
    }
    const options = { key, publicUrl: 'https://invoices.example.com', customer: 'cus_ana' }
    // A page that is made on a server imports the element there, too.
    const code = `import { createClient } from 'fatura/client'; import { createLink } from 'fatura/link'; import 'fatura/element'
      process.stdout.write(typeof createClient + ' ' + await createLink(${JSON.stringify(options)}))`
    const printed = await run(app, process.execPath, '--input-type=module', '-e', code)
    assert.match(printed, /^function https:\/\/invoices\.example\.com\/#t=[\w-]+\.[\w-]+\.[\w-]{86}$/)
  })

  it('is the same program as the checkout, by version, help and API description', async () => {
    const installed = (...args: string[]) => run(app, 'node_modules/.bin/fatura', ...args)
    assert.equal(await installed('--version'), `${manifest.version}\n`)
    assert.equal(await installed('--help'), await run(root, process.execPath, 'bin/fatura.js', '--help'))
    // What the checkout writes: a test of the command holds the two together.
    assert.equal(await installed('openapi'), readFileSync(join(root, 'openapi.json'), 'utf8'))
  })

  it('passes publint', async () => {
    const { messages } = await publint({
      pkgDir: join(app, 'node_modules/fatura'),
      pack: false,
      level: 'suggestion',
      strict: true,
    })
    assert.deepEqual(messages, [])
  })

  it('has types that resolve like its modules, for Node and for bundlers', async () => {
    const use = `import { createClient } from 'fatura/client'
      import { createLink } from 'fatura/link'
      const fatura = createClient({ baseUrl: 'https://invoices.example.com', token: '' })
      export const total: Promise<number> = fatura.invoices.list('cus_ana').then(({ data }) => data.total)
      export const link: Promise<string> = createLink({ key: '{}', publicUrl: '', customer: 'cus_ana' })
      // @ts-expect-error: a filter that the API does not have
      fatura.invoices.list('cus_ana', { paid: true })`
    await writeFile(join(app, 'use.mts'), use)
    const tsc = join(root, 'tools/node_modules/typescript/bin/tsc')
    // Ours are checked themselves; those of the language are not our affair.
    const ours = ['--skipLibCheck', 'false', '--skipDefaultLibCheck']
    const strictly = ['--noEmit', '--strict', ...ours, '--types', '', '--lib', 'esnext,dom']
    for (const module of ['nodenext', 'preserve'])
      await run(app, process.execPath, tsc, ...strictly, '--module', module, 'use.mts')
  })

  it('has types of its element for React 19, for Vue and for the DOM alone', async () => {
    const typed = join(folder, 'typed')
    await mkdir(join(typed, 'node_modules/@types'), { recursive: true })
    await symlink(join(app, 'node_modules/fatura'), join(typed, 'node_modules/fatura'))
    const check = async (file: string, code: string, ...options: string[]) => {
      await writeFile(join(typed, file), `import 'fatura/element'\n${code}`)
      const tsc = join(root, 'tools/node_modules/typescript/bin/tsc')
      const strictly = ['--noEmit', '--strict', '--types', '', '--lib', 'esnext,dom', '--module', 'preserve']
      await run(typed, process.execPath, tsc, ...strictly, '--preserveSymlinks', ...options, file)
    }
    const ours = ['--skipLibCheck', 'false', '--skipDefaultLibCheck']
    const dom = `const element = document.createElement('fatura-invoices')
      element.fetchToken = async () => 'token'
      element.addEventListener('fatura:invoice', ({ detail }) => detail.total_cents.toFixed())
      // @ts-expect-error: a promise of no text
      element.fetchToken = async () => 1`
    await check('dom.ts', dom, ...ours)
    for (const name of ['@types/react', 'csstype', 'vue', '@vue'])
      await symlink(join(root, 'tools/node_modules', name), join(typed, 'node_modules', name))
    const jsx = `export const good = <fatura-invoices key="a" id="b" heading-level={3} fetchToken={async () => 'token'} />
      // @ts-expect-error: no such level
      export const bad = <fatura-invoices heading-level={7} />`
    await check('react.tsx', jsx, '--skipLibCheck', '--jsx', 'react-jsx')
    const template = `import type { GlobalComponents } from 'vue'
      type Props = InstanceType<GlobalComponents['fatura-invoices']>['$props']
      export const good: Props = { customer: 'cus_ana', fetchToken: () => 'token' }
      // @ts-expect-error: no such property
      export const bad: Props = { client: 'cus_ana' }`
    await check('vue.ts', template, '--skipLibCheck')
  })
})

const installedNode = join(root, 'node_modules/node')
const isLocked =
  JSON.parse(readFileSync(join(installedNode, 'package.json'), 'utf8')).version ===
  manifest.devDependencies.node

it('the Node that npm ci installs needs only common system libraries', {
  skip: (process.platform !== 'linux' && 'Linux alone') || (!isLocked && 'the installed Node is another one'),
}, () => {
  const { stdout } = spawnSync('ldd', [join(installedNode, 'bin/node')], { encoding: 'utf8' })
  const libraries = [...stdout.matchAll(/(\w[\w+-]*)\.so/g)].map(([, name]) => name)
  const known = 'linux-vdso libdl libm libstdc++ libgcc_s libpthread libc ld-linux-x86-64 ld-linux-aarch64'
  assert.ok(libraries.includes('libc'), stdout)
  assert.deepEqual(new Set(libraries).difference(new Set(known.split(' '))), new Set())
})
