/**
 * Runs the tests. Without arguments all of them, in two parts: first the files whose outcome does not depend on what runs beside
 * them, side by side, those that take longest first; then, one file at a time, the `*.serial.test.ts`, which measure (floods,
 * fairness, deadlines, memory). Arguments are handed to `node --test`: files, or options such as --test-name-pattern. With
 * CAMPAIGN=on, no arguments are all promises of promises.ts, and R1 R7 those two.
 */
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import './build.ts'
import { isPromise, promiseIds, runCampaign } from './run-campaign.ts'
import { preload, runFiles } from './run-files.ts'

/** They begin first: one that began last would run alone in the end. */
const longest = [
  'test/sim/sim.test.ts',
  'test/cli/histories.test.ts',
  'test/sync/documents.test.ts',
  'test/stripe/webhook.test.ts',
  'test/sync/bad-upstream.test.ts',
  'test/stripe/payment-platform.test.ts',
  'test/cli/documents.test.ts',
  'test/cli/demo.test.ts',
  'test/sync/histories.test.ts',
  'test/sync/one-owner.test.ts',
  'test/sync/one-connector.test.ts',
  'test/sync/deletion-guard.test.ts',
  'test/sync/document-rounds.test.ts',
  'test/sync/sync.test.ts',
]

const given = process.argv.slice(2)
const cores = availableParallelism()
const isSerial = (file: string) => file.endsWith('.serial.test.ts')

const passed =
  process.env.CAMPAIGN === 'on' && given.every(isPromise)
    ? runCampaign(given.length > 0 ? given : promiseIds, run)
    : given.length > 0
      ? run(1, given)
      : await runAll()
process.exitCode = passed ? 0 : 1

function runAll(): Promise<boolean> {
  const files = globSync('test/**/*.test.ts', { exclude: ['**/node_modules'] }).sort()
  const others = files.filter(file => !isSerial(file) && !longest.includes(file))
  return runFiles([
    // Half of the time a file waits.
    { files: [...longest, ...others], atATime: Math.min(2 * cores, cores + 4) },
    { files: files.filter(isSerial), atATime: 1 },
  ])
}

function run(filesAtATime: number, args: readonly string[]): boolean {
  const options = [
    '--test',
    preload,
    `--test-concurrency=${filesAtATime}`,
    '--test-global-setup=./test/support/postgres-server.ts',
  ]
  return spawnSync(process.execPath, [...options, ...args], { stdio: 'inherit' }).status === 0
}
