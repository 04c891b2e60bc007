/** Runs the command line once for every message, within this process, and answers with the exit code. See program-host.ts. */
import { writeSync } from 'node:fs'
import { Readable } from 'node:stream'
import { endMark, type HostedRun } from './program-host.ts'

// Each run listens as a whole process would.
process.setMaxListeners(0)
process.stdout.setMaxListeners(0)
// A command that leaves a call behind ends its process by this; here the process ends with the one that started it.
const { exit } = process
process.exit = (() => {}) as typeof process.exit
process.on('disconnect', () => exit(0))

let count = 0
process.on('message', async ({ args, env, folder, input }: HostedRun) => {
  Object.defineProperty(process, 'stdin', {
    value: Readable.from(input, { objectMode: false }),
    configurable: true,
  })
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, env)
  process.chdir(folder)
  process.argv.splice(2, Infinity, ...args)
  process.exitCode = undefined
  await import(`../../src/cli/main.ts?run=${++count}`)
  // As at the end of a process: what was gathered for the log is written.
  for (const listener of process.listeners('exit')) {
    listener(0)
    process.off('exit', listener)
  }
  process.chdir('/')
  const code = process.exitCode ?? 0
  for (const output of [1, 2]) writeSync(output, endMark)
  process.send?.(code)
})
