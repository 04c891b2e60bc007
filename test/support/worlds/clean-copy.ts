/** A copy of this checkout to try changes and commands in: its own files, with the packages of this one. */
import { execFileSync } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import type { TestContext } from 'node:test'

const root = join(import.meta.dirname, '../../..')

/** Commands of package.json and the program, as `npm run` and `npx` start them, but without the start of npm. */
const programs = {
  npm: `case $1 in run) shift; exec node --run "$@";; start) exec node --run start;; esac\necho "npm $* is not known here" >&2; exit 1`,
  npx: `if [ "$1" = fatura ]; then shift; exec node "$CHECKOUT/bin/fatura.js" "$@"; fi\necho "npx $* is not known here" >&2; exit 1`,
}

export interface CleanCopy {
  folder: string
  /** For a shell in which `npm run` and `npx fatura` are those of the copy. */
  env: Record<string, string>
}

export async function copyCheckout(t: TestContext): Promise<CleanCopy> {
  const folder = await mkdtemp(join(tmpdir(), 'fatura-copy-'))
  // Program hosts of the copy's tests end a moment after them, and write into its caches.
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  })
  const wanted = new Set(['build'])
  for (const path of listed.split('\0'))
    for (let part = path; part !== '.' && part !== ''; part = dirname(part)) wanted.add(part)
  const isWanted = (path: string) => path === '' || wanted.has(path) || path.startsWith('build/')
  await cp(root, folder, {
    recursive: true,
    filter: source => isWanted(source.slice(root.length + 1)),
  })
  await symlink(join(root, 'tools/node_modules'), join(folder, 'tools/node_modules'))
  // A folder of its own, as caches lie in it.
  await mkdir(join(folder, 'node_modules'))
  for (const name of await readdir(join(root, 'node_modules')))
    if (name !== '.cache') await symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  return { folder, env: await shellEnvironment(folder, folder) }
}

/** `npx fatura` is the program of `checkout`; `folder` holds what the shell finds beside it. */
export async function shellEnvironment(folder: string, checkout = root): Promise<Record<string, string>> {
  const bin = join(folder, 'data/bin')
  await mkdir(bin, { recursive: true })
  for (const [name, text] of Object.entries(programs))
    await writeFile(join(bin, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  const path = [bin, dirname(process.execPath), process.env.PATH].join(delimiter)
  return { PATH: path, HOME: folder, CHECKOUT: checkout, NO_COLOR: '1' }
}
