/**
 * Runs the tests. Without arguments all of them but those of test/campaign/, side by side, several files in a process.
 * Arguments are handed to `node --test`: files, or options such as --test-name-pattern. With CAMPAIGN=on, no arguments are all
 * promises of promises.ts and what else is in test/campaign/, and R1 R7 those two.
 */
import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import './build.ts'
import { describeFullDisks } from './full-disks.ts'
import { isPromise, runCampaign } from './run-campaign.ts'

const given = process.argv.slice(2)
const files = globSync('test/**/*.test.ts', { exclude: ['**/node_modules', 'test/campaign'] }).sort()
/** Of a process with all of its files: far longer than any takes, so that only a hang reaches it. */
const hangsAfterMs = 20 * 60_000
/** Characters of the files that share a process, at most. */
const groupSize = 40_000

const passed =
  process.env.CAMPAIGN === 'on' && given.every(isPromise)
    ? runCampaign(given, run)
    : given.length > 0
      ? run(1, given)
      : runTogether(files)
process.exitCode = passed ? 0 : 1
if (!passed) for (const line of describeFullDisks()) process.stderr.write(`\n${line}\n`)

/**
 * Loading the program takes as long as the tests of many a file: files of a folder share processes, by modules that import them. One
 * that does something when it is loaded has a process of its own.
 */
function runTogether(files: readonly string[]): boolean {
  const folder = makeFolder()
  const groups: { place: string; size: number; files: string[] }[] = []
  for (const file of files) {
    const source = readFileSync(file, 'utf8')
    const place = /^(\S.*\bawait\b|before\(|after\(|process\.)/m.test(source) ? file : dirname(file)
    const last = groups.at(-1)
    if (last?.place === place && last.size + source.length <= groupSize) {
      last.files.push(file)
      last.size += source.length
    } else groups.push({ place, size: source.length, files: [file] })
  }
  const modules = groups.map(({ place, files }, index) => {
    const module = join(folder, `${place.replaceAll('/', '-')}-${index}.mjs`)
    writeFileSync(module, files.map(file => `import '${pathToFileURL(resolve(file))}'\n`).join(''))
    return module
  })
  // A process waits for a part of its time. Those that take longest are among the last.
  const atATime = Math.min(2 * availableParallelism(), availableParallelism() + 4)
  const passed = run(atATime, modules.toReversed())
  rmSync(folder, { recursive: true })
  return passed
}

function makeFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), 'fatura-tests-'))
  } catch (error) {
    for (const line of describeFullDisks()) process.stderr.write(`\n${line}\n`)
    throw error
  }
}

function run(filesAtATime: number, args: readonly string[]): boolean {
  const options = [
    '--test',
    `--test-concurrency=${filesAtATime}`,
    '--test-global-setup=./test/support/databases/postgres-server.ts',
    `--test-timeout=${hangsAfterMs}`,
  ]
  return spawnSync(process.execPath, [...options, ...args], { stdio: 'inherit' }).status === 0
}
