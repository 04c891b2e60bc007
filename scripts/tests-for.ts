/**
 * `npm run tests-for src/sync/decide.ts`: the tests that reach a file, nearest first; `-- --all` lists every one of them.
 * Counted from imports, and from files that the code names in quotes, as programs and workers to start. A test that reaches a file
 * need not run each of its lines.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { parseArgs } from 'node:util'

const root = join(import.meta.dirname, '..')

export interface Reach {
  test: string
  /** Number of files on the way: 1 when the test itself imports or names the file. */
  steps: number
}

/** The tests that reach a file of the repository, nearest first. */
export function findTests(file: string): Reach[] {
  const users = findUsers()
  const steps = new Map([[file, 0]])
  for (const [path, step] of steps)
    for (const user of users.get(path) ?? []) if (!steps.has(user)) steps.set(user, step + 1)
  return [...steps]
    .filter(([path]) => path.endsWith('.test.ts'))
    .map(([test, steps]) => ({ test, steps }))
    .sort((a, b) => a.steps - b.steps || (a.test < b.test ? -1 : 1))
}

/** Of each file, the files that import or name it. */
function findUsers(): Map<string, Set<string>> {
  const users = new Map<string, Set<string>>()
  for (const path of ['bin', 'src', 'sandbox', 'scripts', 'bench', 'test'].flatMap(filesOf))
    for (const target of findTargets(path)) users.set(target, (users.get(target) ?? new Set()).add(path))
  return users
}

function filesOf(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map(path => `${folder}/${path}`)
    .filter(path => /\.[jt]sx?$/.test(path) && !path.includes('node_modules'))
}

/** The files that a file imports or names. What is imported for its types alone never runs. */
function findTargets(path: string): string[] {
  const code = readFileSync(join(root, path), 'utf8').replaceAll(
    /^(?:import|export) type [^'";]*'[^']+'/gm,
    '',
  )
  const quoted = [
    ...code.matchAll(/(?<quote>['"`])(?<text>(?:\.{1,2}|src|bin|sandbox|scripts|test)\/[\w./-]+)/g),
  ]
  return quoted.flatMap(({ groups: { text = '' } = {} }) => {
    return filesAt(text.startsWith('.') ? join(dirname(path), text) : text)
  })
}

/** The file at a path, or all files of a folder, as of migrations. */
function filesAt(path: string): string[] {
  const whole = join(root, path)
  if (!existsSync(whole) || relative(root, whole).startsWith('..')) return []
  if (statSync(whole).isFile()) return [path]
  return path.startsWith('src/') ? readdirSync(whole).map(name => join(path, name)) : []
}

/** Number of tests that are listed. Farther ones run the whole program, and are only counted. */
const nearest = 20

function main(): void {
  const { values, positionals } = parseArgs({
    options: { all: { type: 'boolean', default: false } },
    allowPositionals: true,
  })
  const [given = ''] = positionals
  const path = relative(root, given)
  if (filesAt(path).length !== 1) {
    process.stderr.write(`There is no file '${given}'. Usage: npm run tests-for -- [--all] FILE\n`)
    process.exitCode = 1
    return
  }
  const found = findTests(path)
  for (const { test, steps } of values.all ? found : found.slice(0, nearest))
    process.stdout.write(`${test}  ${steps === 1 ? 'directly' : `${steps} files away`}\n`)
  if (!values.all && found.length > nearest)
    process.stdout.write(`… and ${found.length - nearest} farther away: npm run tests-for -- --all ${path}\n`)
  process.stdout.write('By imports and named files: a test may reach a file and not run its lines.\n')
}

if (import.meta.main) {
  // `| head` closes the pipe.
  process.stdout.on('error', () => process.exit())
  main()
}
