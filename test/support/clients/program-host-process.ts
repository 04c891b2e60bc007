/** Runs the command line once for every connection, within this process, and answers with the exit code. See program-host.ts. */
import { once } from 'node:events'
import { existsSync, ftruncateSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { HostedRun } from './program-host.ts'

const [, , folder = '', name = '', run = ''] = process.argv
// Each run listens as a whole process would.
process.setMaxListeners(0)
process.stdout.setMaxListeners(0)
// A command that leaves a call behind ends its process by this; here the process ends with the test run.
const { exit } = process
process.exit = (() => {}) as typeof process.exit
setInterval(() => {
  if (!existsSync(folder) || !isAlive(Number(run))) exit(0)
}, 500)

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

let count = 0
createServer({ allowHalfOpen: true }, async socket => {
  let asked = ''
  socket.setEncoding('utf8').on('data', part => {
    asked += part
  })
  await once(socket, 'end')
  const { args, env, folder, input }: HostedRun = JSON.parse(asked)
  for (const output of [1, 2]) ftruncateSync(output)
  Object.defineProperty(process, 'stdin', {
    value: Readable.from(input, { objectMode: false }),
    configurable: true,
  })
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, env)
  process.chdir(folder)
  process.argv.splice(2, Infinity, ...args)
  process.exitCode = undefined
  await import(`../../../src/cli/main.ts?run=${++count}`)
  // As at the end of a process: what was gathered for the log is written.
  for (const listener of process.listeners('exit')) {
    listener(0)
    process.off('exit', listener)
  }
  process.chdir('/')
  socket.end(String(process.exitCode ?? 0))
}).listen(join(folder, `${name}.socket`), () => {
  process.send?.('ready')
})
