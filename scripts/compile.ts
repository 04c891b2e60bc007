/**
 * Writes what a package holds in place of the source into dist/: JavaScript by tsc, the types of what others may import, and the
 * files that the code reads. Options are handed to tsc.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, globSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')
rmSync(dist, { recursive: true, force: true })
compile('tsconfig.build.json')
compile('tsconfig.types.json')
for (const path of globSync('src/store/**/*.sql', { cwd: root })) cpSync(join(root, path), join(dist, path))

function compile(project: string): void {
  const tsc = join(root, 'tools/node_modules/typescript/bin/tsc')
  const options = ['-p', project, ...process.argv.slice(2)]
  execFileSync(process.execPath, [tsc, ...options], { cwd: root, stdio: 'inherit' })
}
