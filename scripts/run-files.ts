/** Runs test files in the order given, in processes of their own, with one PostgreSQL for all. `node --test` would sort them. */
import { once } from 'node:events'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { globalSetup, globalTeardown } from '../test/support/postgres-server.ts'

/** Files of which so many run at a time. */
export interface Part {
  files: readonly string[]
  atATime: number
}

/** Loaded before each file. */
export const preload = '--import=./test/support/quick-hooks.ts'

/** Whether all tests of all parts passed. Each part begins when the one before has ended. */
export async function runFiles(parts: readonly Part[]): Promise<boolean> {
  const end = async (signal: NodeJS.Signals) => {
    await globalTeardown()
    process.off(signal, end)
    process.kill(process.pid, signal)
  }
  process.on('SIGINT', end).on('SIGTERM', end)
  await globalSetup()
  let passed = true
  try {
    for (const part of parts) if (!(await runPart(part))) passed = false
  } finally {
    await globalTeardown()
    process.off('SIGINT', end).off('SIGTERM', end)
  }
  return passed
}

async function runPart({ files, atATime }: Part): Promise<boolean> {
  let passed = true
  process.stdout.write(
    `${files.length} test files, ${atATime} at a time. Results come in the order of their start: the first ones may take two minutes.\n`,
  )
  const events = run({ files: [...files], concurrency: atATime, execArgv: [preload] })
  events.on('test:fail', ({ todo }) => {
    if (todo === undefined || todo === false) passed = false
  })
  const report = events.compose(new spec())
  report.pipe(process.stdout, { end: false })
  await once(report, 'end')
  return passed
}
