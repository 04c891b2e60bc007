/**
 * Writes what a package holds in place of the source into dist/: JavaScript and types by tsc, and the files it reads. Options are
 * handed to tsc.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, globSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')
rmSync(dist, { recursive: true, force: true })
const tsc = join(root, 'node_modules/typescript/bin/tsc')
execFileSync(process.execPath, [tsc, '-p', 'tsconfig.build.json', ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
})
for (const path of globSync('store/*/migrations/*.sql', { cwd: join(root, 'src') }))
  cpSync(join(root, 'src', path), join(dist, path))
