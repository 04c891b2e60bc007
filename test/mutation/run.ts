/**
 * `npm run mutate`: changes one operator, condition or constant of the files below after the other, in a copy, and runs the tests that
 * should notice. Mutants that no test notices are listed; `survivors.ts` explains those that nothing can notice.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { migrateStore } from '../../src/store/engines.ts'
import { survivors } from './survivors.ts'

/** The tests that look at each file, on SQLite. */
const tests: Record<string, readonly string[]> = {
  'src/store/read-model/counting.ts': [
    'test/http/page-walk.test.ts',
    'test/store/counts.test.ts',
    'test/http/summary.test.ts',
  ],
  'src/store/stamps.ts': ['test/store/stamps.test.ts'],
  'src/linking/link.ts': ['test/linking/link.test.ts'],
  'src/access/authenticate.ts': ['test/access/access.test.ts', 'test/access/guard.test.ts'],
  'src/access/grant.ts': ['test/access/access.test.ts', 'test/access/jwt.test.ts'],
  'src/access/scopes.ts': ['test/access/access.test.ts'],
  'src/access/token.ts': ['test/access/access.test.ts'],
  'src/access/short-cache.ts': ['test/access/access.test.ts'],
  'src/access/recent-map.ts': ['test/access/guard.test.ts', 'test/access/access.test.ts'],
  'src/access/lookup-guard.ts': ['test/access/guard.test.ts', 'test/access/access.test.ts'],
  'src/access/windows.ts': ['test/access/guard.test.ts'],
  'src/access/fair-queue.ts': ['test/access/guard.test.ts', 'test/http/fairness.test.ts'],
  'src/access/key-set.ts': ['test/access/key-set.test.ts'],
  'src/access/fetch-key-set.ts': ['test/access/key-set.test.ts'],
  'src/access/import-keys.ts': ['test/access/key-set.test.ts', 'test/access/jwt.test.ts'],
  'src/access/parse-jwt.ts': ['test/access/jwt.test.ts'],
  'src/access/parse-object.ts': ['test/access/jwt.test.ts'],
  'src/access/open-verifiers.ts': ['test/access/jwt.test.ts', 'test/access/link.test.ts'],
  'src/access/verify-claims.ts': ['test/access/jwt.test.ts', 'test/access/link.test.ts'],
  'src/access/verify-provider.ts': ['test/access/jwt.test.ts', 'test/access/key-set.test.ts'],
  'src/access/verify-link.ts': ['test/access/link.test.ts'],
  'src/access/link-form.ts': ['test/access/link.test.ts'],
}

/** A pattern of code, and what takes its place. */
const mutators: readonly [RegExp, (found: string) => string][] = [
  [/ === /g, () => ' !== '],
  [/ !== /g, () => ' === '],
  [/ > /g, () => ' >= '],
  [/ >= /g, () => ' > '],
  [/ < /g, () => ' <= '],
  [/ <= /g, () => ' < '],
  [/ && /g, () => ' || '],
  [/ \|\| /g, () => ' && '],
  [/ \?\? /g, () => ' && '],
  [/ \+ /g, () => ' - '],
  [/ - /g, () => ' + '],
  [/ \* /g, () => ' / '],
  [/ \/ /g, () => ' * '],
  [/!(?=[\w(])/g, () => ''],
  [/\btrue\b/g, () => 'false'],
  [/\bfalse\b/g, () => 'true'],
  [/\bMath\.max\b/g, () => 'Math.min'],
  [/\bMath\.min\b/g, () => 'Math.max'],
  [/\.some\(/g, () => '.every('],
  [/\.every\(/g, () => '.some('],
  [/\.startsWith\(/g, () => '.endsWith('],
  [/\.endsWith\(/g, () => '.startsWith('],
  [/(?<![\w.$'"[])\d[\d_]*(?![\w.\]'"])/g, found => String(Number(found.replaceAll('_', '')) + 1)],
]

interface Mutant {
  file: string
  line: number
  from: string
  to: string
  /** The file with it. */
  text: string
}

/** The places of comments, texts and patterns are blank: nothing there is code. */
function blankTexts(code: string): string {
  const parts =
    /\/\/.*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|(?<=[(=,:] ?)\/(?![/*])(?:\\.|\[[^\]]*\]|[^/\\\n])+\//g
  return code.replace(parts, found => found.replaceAll(/[^\n]/g, ' '))
}

function mutantsOf(root: string, file: string): Mutant[] {
  const source = readFileSync(join(root, file), 'utf8')
  // Types are spaces then, and everything stays in its place.
  const code = blankTexts(stripTypeScriptTypes(source))
  const mutants = mutators.flatMap(([pattern, replace]) =>
    [...code.matchAll(pattern)].map(({ index, 0: from }): Mutant => {
      const to = replace(from)
      const text = source.slice(0, index) + to + source.slice(index + from.length)
      return { file, line: source.slice(0, index).split('\n').length, from: from.trim(), to: to.trim(), text }
    }),
  )
  return mutants.sort((a, b) => a.line - b.line)
}

const { values } = parseArgs({
  options: { only: { type: 'string', default: '' }, list: { type: 'boolean', default: false } },
})
const write = (text: string) => process.stdout.write(`${text}\n`)
const root = new URL('../..', import.meta.url).pathname
const files = Object.keys(tests).filter(file => file.includes(values.only))
const all = files.flatMap(file => mutantsOf(root, file))
if (values.list)
  write(files.map(file => `${all.filter(mutant => mutant.file === file).length} ${file}`).join('\n'))
else await run()

async function run(): Promise<void> {
  const copy = mkdtempSync(join(tmpdir(), 'fatura-mutants-'))
  for (const name of ['src', 'sandbox', 'test', 'bin', 'build', 'package.json', 'openapi.json'])
    cpSync(join(root, name), join(copy, name), { recursive: true })
  for (const name of ['node_modules', 'tools']) symlinkSync(join(root, name), join(copy, name))
  const template = join(copy, 'template.db')
  await migrateStore(`sqlite:${template}`)
  const env = { ...process.env, TEST_SQLITE_TEMPLATE: template }
  let [killed, explained] = [0, 0]
  const left: string[] = []
  for (const { file, line, from, to, text } of all) {
    writeFileSync(join(copy, file), text)
    const isKilled = (tests[file] ?? []).some(test => {
      const options = ['--test-skip-pattern', 'postgres', test]
      return (
        spawnSync(process.execPath, options, { cwd: copy, env, stdio: 'ignore', timeout: 120_000 }).status !==
        0
      )
    })
    const code = text.split('\n')[line - 1]?.trim() ?? ''
    if (isKilled) killed++
    else if (survivors.some(each => each.file === file && each.mutants.includes(code))) explained++
    else {
      left.push(`${file}:${line} ${from} → ${to}: ${code}`)
      write(`survived ${left.at(-1)}`)
    }
    cpSync(join(root, file), join(copy, file))
  }
  rmSync(copy, { recursive: true, force: true })
  const share = ((100 * (killed + explained)) / all.length).toFixed(1)
  write(
    `${all.length} mutants, ${killed} killed, ${explained} equivalent, ${left.length} survived: ${share} %`,
  )
  process.exitCode = Number(share) >= 90 ? 0 : 1
}
