/** What has to be undone at the end, whatever the end is: in the reverse order, each once. */
let isStopping = false
const pending: (() => Promise<void>)[] = []

/** Returns a function that undoes it already now. */
export function undoAtEnd(undo: () => Promise<void>): () => Promise<void> {
  if (isStopping) {
    void undo()
    throw new Error('Interrupted.')
  }
  pending.push(undo)
  return async () => {
    const place = pending.indexOf(undo)
    if (place === -1) return
    pending.splice(place, 1)
    await undo()
  }
}

export async function cleanUp(): Promise<void> {
  for (let undo = pending.pop(); undo !== undefined; undo = pending.pop())
    await undo().catch((error: Error) => process.stderr.write(`${error.message}\n`))
}

/** From here on, failures are only the consequence. */
export function isInterrupted(): boolean {
  return isStopping
}

/** Ctrl-C and faults undo everything, too; a second Ctrl-C ends at once. */
export function cleanUpOnSignals(): void {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  const end = async (code: number): Promise<void> => {
    isStopping = true
    await cleanUp()
    process.exit(code)
  }
  process.once('uncaughtException', error => {
    process.stderr.write(`${error.stack}\n`)
    void end(1)
  })
  for (const signal of signals)
    process.on(signal, () => {
      if (isStopping) process.exit(130)
      process.stderr.write('\nStopping everything …\n')
      void end(130)
    })
}
