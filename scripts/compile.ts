/** Writes what a package holds in place of the source into dist/: JavaScript and types by tsc, and the files it reads. */
import { execFileSync } from 'node:child_process'
import { cpSync, rmSync } from 'node:fs'
import { extname, join } from 'node:path'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')
rmSync(dist, { recursive: true, force: true })
execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
})
for (const engine of ['sqlite', 'postgres'])
  cpSync(join(root, `src/store/${engine}/migrations`), join(dist, `store/${engine}/migrations`), {
    recursive: true,
    filter: path => ['', '.sql'].includes(extname(path)),
  })
