/**
 * Runs the tests. Without arguments all of them, in two parts: first the files whose outcome does not depend on what runs beside
 * them, side by side; then, one file at a time, the `*.serial.test.ts`, which measure (floods, fairness, deadlines, memory).
 * Arguments are handed to `node --test`: files, or options such as --test-name-pattern. With CAMPAIGN=on, no arguments are all
 * promises of promises.ts, and R1 R7 those two.
 */
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import './build.ts'
import { isPromise, promiseIds, runCampaign } from './run-campaign.ts'

const given = process.argv.slice(2)
const files = globSync('test/**/*.test.ts', { exclude: ['**/node_modules'] }).sort()
const isSerial = (file: string) => file.endsWith('.serial.test.ts')

const passed =
  process.env.CAMPAIGN === 'on' && given.every(isPromise)
    ? runCampaign(given.length > 0 ? given : promiseIds, run)
    : given.length > 0
      ? run(1, given)
      : [
          run(
            // A file waits for half of its time.
            Math.min(2 * availableParallelism(), availableParallelism() + 4),
            files.filter(file => !isSerial(file)),
          ),
          run(1, files.filter(isSerial)),
        ].every(Boolean)
process.exitCode = passed ? 0 : 1

function run(filesAtATime: number, args: readonly string[]): boolean {
  const options = [
    '--test',
    `--test-concurrency=${filesAtATime}`,
    '--test-global-setup=./test/support/postgres-server.ts',
  ]
  return spawnSync(process.execPath, [...options, ...args], { stdio: 'inherit' }).status === 0
}
