/**
 * Loaded before each test file. To know which test an uncaught error belongs to, `node:test` follows every promise, which takes a
 * quarter of the CPU of tests that wait much. Here it follows none, and an error that nobody catches fails the whole file: at once,
 * as the test that waits for what failed may never end.
 */
import hooks from 'node:async_hooks'
import { isMainThread } from 'node:worker_threads'

/** Time for the test that fails by it to say so. */
const graceMs = 3_000
/** The real one, whatever a test puts in its place. */
const { setTimeout } = globalThis

if (isMainThread && process.env.NODE_TEST_CONTEXT !== undefined) {
  const { createHook } = hooks
  const withoutPromises: object = { trackPromises: false }
  hooks.createHook = callbacks => createHook({ ...callbacks, ...withoutPromises })
  for (const event of ['uncaughtException', 'unhandledRejection'])
    process.on(event, error => {
      process.stderr.write(`${event}: ${error instanceof Error ? error.stack : String(error)}\n`)
      process.exitCode = 1
      setTimeout(() => process.exit(1), graceMs).unref()
    })
}
